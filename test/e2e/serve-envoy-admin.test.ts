// serve --envoy-admin: what it tells Envoy, when, and what an admin interface that does not answer costs.
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { expect } from 'chai';
import { runProduct } from '../../lab/command.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { listen } from '../support/listen.ts';
import { useRunning } from '../support/use-running.ts';
import { configuration, startIssuer } from './lab.ts';

const notTold = 'Envoy not told that it is healthy';

describe('serve --envoy-admin', () => {
  const issuer = useRunning(startIssuer);
  let service: ServiceProcess | undefined;
  let admin: Server | undefined;
  afterEach(async () => {
    await service?.kill();
    admin?.closeAllConnections();
    admin?.close();
    service = undefined;
    admin = undefined;
  });

  const serveBeside = async (url: string): Promise<ServiceProcess> => {
    service = await startServiceProcess(configuration(issuer.jwksUrl), { arguments: ['--envoy-admin', url] });
    return service;
  };
  const startAdmin = async (listener: RequestListener): Promise<string> => {
    admin = createServer(listener);
    return `http://127.0.0.1:${await listen(admin)}`;
  };
  const warningsOf = ({ log }: ServiceProcess) => log().filter(({ msg }) => msg === notTold);

  it('tells Envoy once, before it fetches keys', async () => {
    const fetchesBefore = issuer.requests('jwks').length;
    const asked: unknown[] = [];
    const url = await startAdmin(({ method, url }, response) => {
      asked.push({ method, url, fetches: issuer.requests('jwks').length - fetchesBefore });
      response.end('OK');
    });
    const { stop, log } = await serveBeside(url);
    await stop();
    expect(log().at(-1)).to.include({ msg: 'stopped' });
    expect(asked).to.deep.equal([{ method: 'POST', url: '/healthcheck/ok', fetches: 0 }]);
  });

  it('warns and serves when nothing listens there, as at the first start of a pod', async () => {
    const [port] = await freePorts(1);
    const [warning, ...more] = warningsOf(await serveBeside(`http://127.0.0.1:${port}`));
    expect(more).to.deep.equal([]);
    expect(warning).to.include({ level: 'warn', problem: 'ECONNREFUSED' });
  });

  it('gives up after a second', async () => {
    const ended: Promise<unknown>[] = [];
    const url = await startAdmin(({ socket }) => ended.push(once(socket, 'close')));
    expect(warningsOf(await serveBeside(url))[0]).to.include({ problem: 'no answer in 1000 ms' });
    await Promise.all(ended);
  });

  it('exits 1 for what is no http URL', async () => {
    const { code, stderr } = await runProduct(['serve', '--envoy-admin', 'https://127.0.0.1:9901']);
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr: 'account-authz serve: --envoy-admin must be an http URL such as http://127.0.0.1:9901\n',
    });
  });
});
