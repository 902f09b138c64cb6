package nnha;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;

/** Hadoop's login by a keytab, whose tickets Hadoop renews, and files that are written with it. */
public final class RenewedClient {
  private final List<String> written = new ArrayList<>();
  private final AtomicBoolean over = new AtomicBoolean();
  private volatile Exception failure;
  private Thread writer;

  /** Begins to write files, each over connections of its own. */
  public void begin(Configuration conf, String principal, String keytab, String folder)
      throws Exception {
    UserGroupInformation.setConfiguration(conf);
    UserGroupInformation.loginUserFromKeytab(principal, keytab);
    writer = new Thread(() -> {
      try {
        for (int n = 0; !over.get(); n++) {
          Path path = new Path(folder, "file" + n);
          try (FileSystem files = FileSystem.newInstance(conf)) {
            try (FSDataOutputStream out = files.create(path, false)) {
              out.writeUTF(path.getName());
            }
          }
          synchronized (written) {
            written.add(path.getName());
          }
          Thread.sleep(50); // other tests need the machine, too
        }
      } catch (Exception e) {
        failure = e;
      }
    });
    writer.start();
  }

  /** Returns what has ended the writer, or nothing. */
  public String trouble() {
    return failure == null ? "" : failure.toString();
  }

  public int count() {
    synchronized (written) {
      return written.size();
    }
  }

  /** Ends the writer; returns what was acknowledged and is not there. */
  public String lost(Configuration conf, String folder) throws Exception {
    over.set(true);
    writer.join();
    StringBuilder missing = new StringBuilder(trouble());
    try (FileSystem files = FileSystem.newInstance(conf)) {
      for (String name : written) {
        try (var in = files.open(new Path(folder, name))) {
          if (!in.readUTF().equals(name)) {
            missing.append(name).append(" differs ");
          }
        } catch (Exception e) {
          missing.append(name).append(": ").append(e).append(' ');
        }
      }
    }
    return missing.toString();
  }
}
