package nnha;

import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.web.URLConnectionFactory;
import org.apache.hadoop.security.UserGroupInformation;

/** Asks for a page, and sends a body in chunks to another one, as Hadoop's NameNodes do. */
public final class PageClient {
  private PageClient() {}

  public static void main(String[] words) throws Exception {
    Configuration conf = new Configuration(false);
    conf.set("hadoop.security.authentication", "kerberos");
    UserGroupInformation.setConfiguration(conf);
    UserGroupInformation.loginUserFromKeytab(words[0], words[1]);
    PrivilegedExceptionAction<Void> asking = () -> {
      URLConnectionFactory factory = URLConnectionFactory.newDefaultURLConnectionFactory(conf);
      HttpURLConnection get =
          (HttpURLConnection) factory.openConnection(new URL(words[2]), true);
      System.out.println("GET " + get.getResponseCode());
      HttpURLConnection put =
          (HttpURLConnection) factory.openConnection(new URL(words[3]), true);
      put.setRequestMethod("PUT");
      put.setDoOutput(true);
      put.setChunkedStreamingMode(64);
      try (OutputStream out = put.getOutputStream()) {
        out.write(new byte[200]);
      }
      System.out.println("PUT " + put.getResponseCode() + " " + put.getResponseMessage());
      return null;
    };
    UserGroupInformation.getLoginUser().doAs(asking);
  }
}
