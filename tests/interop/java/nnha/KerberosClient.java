package nnha;

import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.Tool;

/** Users with tickets, by their keytabs, and one that writes until it is asked to end. */
public final class KerberosClient {
  private final List<String> written = new ArrayList<>();
  private final AtomicBoolean over = new AtomicBoolean();
  private volatile Exception failure;
  private Thread writer;

  /** The file system as a user has it; {@code forUser} is whom it acts for, or empty. */
  public FileSystem open(Configuration conf, String principal, String keytab, String forUser)
      throws Exception {
    UserGroupInformation.setConfiguration(conf);
    UserGroupInformation user =
        UserGroupInformation.loginUserFromKeytabAndReturnUGI(principal, keytab);
    if (!forUser.isEmpty()) {
      user = UserGroupInformation.createProxyUser(forUser, user);
    }
    PrivilegedExceptionAction<FileSystem> opening = () -> FileSystem.newInstance(conf);
    return user.doAs(opening);
  }

  /** The file system as a client without tickets has it. */
  public FileSystem openSimple(Configuration conf, String name) throws Exception {
    UserGroupInformation.setConfiguration(conf);
    PrivilegedExceptionAction<FileSystem> opening = () -> FileSystem.newInstance(conf);
    return UserGroupInformation.createRemoteUser(name).doAs(opening);
  }

  /** Runs a command as a user; returns how it ends. */
  public int runAs(Tool tool, String[] words, String principal, String keytab) throws Exception {
    UserGroupInformation user =
        UserGroupInformation.loginUserFromKeytabAndReturnUGI(principal, keytab);
    PrivilegedExceptionAction<Integer> running = () -> tool.run(words);
    return user.doAs(running);
  }

  public void begin(FileSystem files, String folder) {
    writer = new Thread(() -> {
      try {
        for (int n = 0; !over.get(); n++) {
          Path path = new Path(folder, "file" + n);
          try (FSDataOutputStream out = files.create(path)) {
            out.writeUTF(path.getName());
          }
          synchronized (written) {
            written.add(path.getName());
          }
        }
      } catch (Exception e) {
        failure = e;
      }
    });
    writer.start();
  }

  public int count() {
    synchronized (written) {
      return written.size();
    }
  }

  /** Ends the writer; returns what was acknowledged and is not there, or the failure. */
  public String lost(FileSystem files, String folder) throws Exception {
    over.set(true);
    writer.join();
    if (failure != null) {
      return "failed: " + failure;
    }
    StringBuilder missing = new StringBuilder();
    for (String name : written) {
      try (var in = files.open(new Path(folder, name))) {
        if (!in.readUTF().equals(name)) {
          missing.append(name).append(" differs ");
        }
      } catch (Exception e) {
        missing.append(name).append(": ").append(e).append(' ');
      }
    }
    return missing.toString();
  }
}
