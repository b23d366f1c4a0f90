// Authorino as a contender: beside a Kubernetes API of its own, which stands on the core of the load and is frozen once Authorino has
// its policy, so that Authorino alone is measured.
import { join } from 'node:path';
import { freePorts } from '../../test/support/envoy.ts';
import { authority } from '../load/check-message.ts';
import {
  authConfig,
  authConfigDefinition,
  authConfigsPath,
  definitionsPath,
  namespace,
} from '../peers/authorino/auth-config.ts';
import type { AuthorinoTools } from './build-peers.ts';
import type { RunningContender } from './contender.ts';
import { startKubeApi } from './kube-api.ts';
import type { BenchLab } from './lab.ts';
import { type Probe, startServerProcess } from './server-process.ts';
import { audience, issuer } from './tokens.ts';

export interface AuthorinoStart {
  readonly lab: BenchLab;
  readonly tools: AuthorinoTools;
  readonly probe: Omit<Probe, 'target'>;
  readonly cacheSeconds?: number;
}

export async function startAuthorino({ lab, tools, probe, ...settings }: AuthorinoStart): Promise<RunningContender> {
  const [port = 0] = await freePorts(1);
  const kube = await startKubeApi(tools, lab.cores?.load, join(lab.directory, `kube-${port}`));
  try {
    await kube.create(definitionsPath, authConfigDefinition);
    const issuerUrl = lab.issuer.url;
    await kube.create(authConfigsPath, authConfig({ host: authority, issuerUrl, issuer, audience, ...settings }));
    const command = {
      command: tools.authorino,
      args: ['server', `--ext-auth-grpc-port=${port}`, ...quiet],
      environment: { KUBECONFIG: kube.kubeconfig },
    };
    const server = await startServerProcess(command, lab.cores?.server, { ...probe, target: { port } });
    kube.freeze();
    const stop = async (): Promise<void> => {
      await Promise.all([server.stop(), kube.stop()]);
    };
    return { ...server, port, stop };
  } catch (error) {
    await kube.stop();
    throw error;
  }
}

/** Nothing but what answers Check: no log, and none of its other servers. */
const quiet = [
  `--watch-namespace=${namespace}`,
  '--log-level=error',
  '--ext-auth-http-port=0',
  '--oidc-http-port=0',
  '--metrics-addr=0',
  '--health-probe-addr=0',
];
