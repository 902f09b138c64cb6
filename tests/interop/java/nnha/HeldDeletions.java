// Holds up a DataNode's deletions, as a slow disk does, until they are let go; for tests/interop/test_java_datanode.py.
package nnha;

import java.util.concurrent.CountDownLatch;
import org.apache.hadoop.hdfs.server.datanode.DataNodeFaultInjector;

public final class HeldDeletions extends DataNodeFaultInjector {
  private final CountDownLatch begun = new CountDownLatch(1);
  private final CountDownLatch released = new CountDownLatch(1);

  @Override
  public void delayDeleteReplica() {
    begun.countDown();
    try {
      released.await();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Whether a replica is about to be deleted. */
  public boolean hasBegun() {
    return begun.getCount() == 0;
  }

  public void release() {
    released.countDown();
  }
}
