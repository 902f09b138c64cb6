// mkdirs from threads of one client JVM, as fast as they are answered; for tests/campaigns/bench/mkdirs.py.
package nnha;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;

public final class MkdirsLoad {
  /** For each line "THREADS SECONDS" one line with the rate; ends with its input. */
  public static void main(String[] arguments) throws Exception {
    Configuration conf = new HdfsConfiguration();
    FileSystem files = FileSystem.newInstance(conf);
    BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
    int round = 0;
    for (String line = asked.readLine(); line != null; line = asked.readLine()) {
      String[] words = line.split(" ");
      int threads = Integer.parseInt(words[0]);
      System.out.println(measure(files, threads, Double.parseDouble(words[1]), "r" + round++));
      System.out.flush();
    }
    files.close();
  }

  private static double measure(FileSystem files, int threads, double seconds, String name)
      throws Exception {
    AtomicLong done = new AtomicLong();
    CountDownLatch ended = new CountDownLatch(threads);
    Exception[] failure = new Exception[1];
    long began = System.nanoTime();
    long end = began + (long) (seconds * 1e9);
    for (int i = 0; i < threads; i++) {
      Path parent = new Path("/bench/" + name + "/" + threads + "/" + i);
      new Thread(() -> {
        try {
          for (int n = 0; System.nanoTime() < end; n++) {
            files.mkdirs(new Path(parent, "directory" + n));
            done.incrementAndGet();
          }
        } catch (Exception e) {
          failure[0] = e;
        } finally {
          ended.countDown();
        }
      }).start();
    }
    ended.await();
    if (failure[0] != null) {
      throw failure[0];
    }
    return done.get() / ((System.nanoTime() - began) / 1e9);
  }
}
