package nnha;

import java.io.File;
import java.io.IOException;
import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;

/** What a user, a job and a resource manager do with a delegation token. */
public final class TokenClient {
  private static UserGroupInformation user(Configuration conf, String name, String file)
      throws IOException {
    UserGroupInformation user = UserGroupInformation.createRemoteUser(name);
    if (!file.isEmpty()) {
      user.addCredentials(Credentials.readTokenStorageFile(new File(file), conf));
    }
    return user;
  }

  /** The file system as a user has it: with the tokens of a file, or none. */
  public FileSystem open(Configuration conf, String name, String file) throws Exception {
    PrivilegedExceptionAction<FileSystem> opening = () -> FileSystem.newInstance(conf);
    return user(conf, name, file).doAs(opening);
  }

  public void save(Configuration conf, Token<?> token, String file) throws IOException {
    Credentials credentials = new Credentials();
    credentials.addToken(token.getService(), token);
    credentials.writeTokenStorageFile(new Path("file://" + file), conf);
  }

  public long renew(Configuration conf, String name, Token<?> token) throws Exception {
    PrivilegedExceptionAction<Long> renewing = () -> token.renew(conf);
    return user(conf, name, "").doAs(renewing);
  }

  public void cancel(Configuration conf, String name, Token<?> token) throws Exception {
    PrivilegedExceptionAction<Void> cancelling = () -> {
      token.cancel(conf);
      return null;
    };
    user(conf, name, "").doAs(cancelling);
  }
}
