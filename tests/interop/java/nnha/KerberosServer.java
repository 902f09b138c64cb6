package nnha;

import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.ha.HAServiceProtocol;
import org.apache.hadoop.ha.HAServiceStatus;
import org.apache.hadoop.ha.proto.HAServiceProtocolProtos.HAServiceProtocolService;
import org.apache.hadoop.ha.protocolPB.HAServiceProtocolPB;
import org.apache.hadoop.ha.protocolPB.HAServiceProtocolServerSideTranslatorPB;
import org.apache.hadoop.ipc.ProtobufRpcEngine2;
import org.apache.hadoop.ipc.RPC;
import org.apache.hadoop.security.UserGroupInformation;

/** Hadoop's own RPC server with a keytab; it says who asks. */
public final class KerberosServer implements HAServiceProtocol {
  private RPC.Server server;
  private String asked = "";

  public int begin(Configuration conf, String principal, String keytab) throws Exception {
    UserGroupInformation.setConfiguration(conf);
    RPC.setProtocolEngine(conf, HAServiceProtocolPB.class, ProtobufRpcEngine2.class);
    var service = HAServiceProtocolService.newReflectiveBlockingService(
        new HAServiceProtocolServerSideTranslatorPB(this));
    UserGroupInformation.loginUserFromKeytab(principal, keytab);
    PrivilegedExceptionAction<RPC.Server> building = () -> new RPC.Builder(conf)
        .setProtocol(HAServiceProtocolPB.class).setInstance(service)
        .setBindAddress("127.0.0.1").setPort(0).setNumHandlers(1).build();
    server = UserGroupInformation.getLoginUser().doAs(building);
    server.start();
    return server.getListenerAddress().getPort();
  }

  public void end() {
    server.stop();
  }

  public String whoAsked() {
    return asked;
  }

  @Override
  public HAServiceStatus getServiceStatus() throws java.io.IOException {
    asked = UserGroupInformation.getCurrentUser().toString();
    return new HAServiceStatus(HAServiceState.STANDBY).setNotReadyToBecomeActive("a test");
  }

  @Override
  public void monitorHealth() {}

  @Override
  public void transitionToActive(StateChangeRequestInfo request) {}

  @Override
  public void transitionToStandby(StateChangeRequestInfo request) {}

  @Override
  public void transitionToObserver(StateChangeRequestInfo request) {}
}
