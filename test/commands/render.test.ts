// The render command: usage errors, and which files --out replaces.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { smallestConfig, writeFixture } from '../../lab/config-file.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { config, render } from './render-lab.ts';

describe('render with invalid input', () => {
  const service = { listen: '0.0.0.0:9191', listenInsecure: true };
  const open = { public: [{ path: '/healthz' }] };
  const inMesh = '--namespace shop --authz-namespace authz';
  const waypoint = `--attach waypoint --upstream orders:80 ${inMesh}`;
  const noFolder =
    /listen .* must be a socket in a folder of its own, such as unix:\/run\/account-authz\/authz\.sock, for kubernetes$/m;
  const problems: readonly (readonly [args: string | readonly string[], problem: RegExp, changes?: object])[] = [
    [[], /the first argument must be a target: envoy, envoy-parts/],
    ['nginx', /the first argument must be a target/],
    ['--config x', /the first argument must be a target/],
    ['envoy --lsten x', /unknown option --lsten/],
    ['envoy x', /takes at most 1 argument/],
    ['envoy --listen', /--listen must have a value: /],
    ['envoy --listen --upstream a:1', /--listen must have a value: /],
    ['envoy --listen 8080', /--listen must be host:port/],
    ['envoy --listen unix:/a/b', /--listen must be HOST:PORT/],
    ['envoy --listen example.com:80', /--listen must have an IP address/],
    ['envoy --listen 0.0.0.0:0', /--listen must have a port from 1 to 65535/],
    ['envoy --listen 0.0.0.0:9901', /--listen must differ from --envoy-admin-port/],
    ['envoy --listen 0.0.0.0:8081', /--listen must differ from --readiness-port/],
    ['envoy --readiness-port 9901', /--readiness-port must differ from --envoy-admin-port/],
    ['envoy --readiness-port 9192', /--readiness-port must differ from admin of the configuration/],
    ['envoy --envoy-admin-port 9191', /--envoy-admin-port must differ from listen of the configuration/],
    ['envoy --envoy-admin-port 0', /--envoy-admin-port must be a port from 1 to 65535/],
    ['envoy --readiness-port 70000', /--readiness-port must be a port from 1 to 65535/],
    ['envoy-parts --readiness-port 81', /--readiness-port: leave it out, it is for envoy, kubernetes$/m],
    ['envoy --cors-header idempotency-key', /--cors-header needs --cors-origin/],
    ['envoy --cors-expose x-total-count', /--cors-expose needs --cors-origin/],
    ['gateway-api --cors-expose x-total-count', /gateway-api has no .*--cors-expose/],
    [['envoy', '--cors-origin', 'https://a.example', '--cors-expose', '*'], /--cors-expose must be the name of a/],
    ['envoy --cors-origin https://*.example.com', /--cors-origin must be an origin .* no wildcard/],
    [
      ['envoy', '--cors-origin', 'https://a.example', '--cors-header', 'a b'],
      /--cors-header must be the name of a request header/,
    ],
    [['kubernetes', '--image', 'a b'], /--image must be the reference of an image/],
    [['kubernetes', '--envoy-image', ''], /--envoy-image must be the reference of an image/],
    ['envoy --force', /--force needs --out/],
    ['envoy-gateway --authz-namespace authz', /--authz-namespace needs --namespace: /],
    ['envoy-gateway --gateway A', /--gateway must be a Kubernetes name/],
    ['envoy --listen 0.0.0.0:9191', /--listen must differ from listen of the configuration/],
    [['envoy', '--upstream', 'a b:1'], /--upstream must have an IPv4 address/],
    ['envoy --upstream 127.0.0.1:8080', /--upstream must differ from --listen/],
    ['envoy --upstream 127.0.0.1:9191', /--upstream must differ from listen of the configuration/],
    ['envoy-gateway --upstream orders.shop:80', /--upstream must be a Service .* \(orders:80\), for/, service],
    ['kgateway --upstream /api/subscriptions/a=10.0.0.9:80', /--upstream must be a Service .* by its name/, service],
    [
      'kgateway --cors-origin https://app.example.com',
      /methods of roles must be among GET, .* with --cors-origin: a TrafficPolicy allows pages no QUERY, for/,
      { ...service, roles: { owner: ['QUERY'] } },
    ],
    ['gateway-api --authz-host 10.0.0.9', /--authz-host .* must be the name of a Service such as/, service],
    [
      'gateway-api',
      /methods of public must be among GET, .*: an HTTPRoute has no PURGE, for/,
      { ...service, public: [{ path: '/a', methods: ['PURGE'] }] },
    ],
    ['envoy --upstream api=127.0.0.1:1', /--upstream must have a literal path before "=", such as/],
    ['envoy --upstream /api/:id=127.0.0.1:1', /--upstream must have a literal path/],
    ['envoy --upstream /nowhere=127.0.0.1:1', /--upstream \/nowhere must be under a route of the configuration/],
    ['envoy --upstream /a=127.0.0.1:1 --upstream /a=127.0.0.1:2', /--upstream must be given once for \/a/],
    ['envoy --upstream 127.0.0.1:1 --upstream 127.0.0.1:2', /--upstream must be given once without a path/],
    ['envoy --idle-timeout 0', /--idle-timeout must be a number from 1 to /],
    ['envoy --request-timeout 1s', /--request-timeout must be a number from 0 to /],
    ['envoy --max-headers-kib 8193', /--max-headers-kib must be a number from 1 to 8192/],
    ['envoy --underscores allow', /--underscores must be one of reject, drop/],
    ['envoy --upgrade h2c', /--upgrade must be one of websocket/],
    ['envoy --upgrade websocket --upstream-protocol http2', /--upgrade needs --upstream-protocol http1 or auto/],
    ['envoy --grpc-web', /--grpc-web needs --upstream-protocol http2 or auto/],
    ['envoy --shadow --idle-timeout 5', /--shadow changes no answer, and --idle-timeout would: leave one of them out/],
    ['envoy --shadow --trusted-hops 1', /--shadow changes no answer, and --trusted-hops would/],
    ['istio --upgrade websocket', /istio has no setting like --upgrade: Istio takes WebSocket handshakes by itself/],
    ['istio --upstream /api=127.0.0.1:1', /--upstream must have no path: .* in a VirtualService, for istio$/m],
    ['gateway-api --cors-origin https://app.example.com', /gateway-api has no setting like --cors-origin: Cilium/],
    ['gateway-api --listen 0.0.0.0:1', /gateway-api has no setting like --listen: set the port of the Service/],
    ['gateway-api --idle-timeout 0', /--idle-timeout: the data plane has its own/],
    ['istio --grpc-web', /--grpc-web: name the port of the Service grpc-web$/m],
    ['kgateway --underscores drop', /kgateway has no setting like --underscores: kgateway passes /],
    ['envoy-gateway --shadow', /envoy-gateway has no setting like --shadow: run the trial with /],
    ['envoy --upstream-protocol h2c', /--upstream-protocol must be one of http1, http2, auto/],
    ['envoy --authz-host a/b', /--authz-host must be an IP address or a host name/],
    ['envoy --cors-origin *', /--cors-origin must be an origin/],
    ['envoy --cors-origin https://app.example.com/', /--cors-origin must be an origin/],
    ['envoy --cors-origin https://App.example.com', /--cors-origin must be an origin/],
    ...['envoy', 'istio', 'envoy-gateway', 'kgateway'].map(
      target =>
        [
          `${target} --cors-origin https://app.example.com --cors-origin http://localhost:3000`,
          /--cors-origin http:\/\/localhost:3000 must be one of token\.origins: /,
          { token: { from: [{ cookie: 'session' }], origins: ['https://app.example.com'] } },
        ] as const,
    ),
    ['envoy --trusted-hops -1', /--trusted-hops must have a value: /],
    ['envoy --trusted-hops=-1', /--trusted-hops must be a number/],
    ['envoy --trusted-hops one', /--trusted-hops must be a number/],
    ['envoy --selector a=b', /envoy has no setting like --selector: leave it out, it is for kubernetes, istio, /],
    ...['a', 'a=1,a=2', 'a=-b', '/a=b'].map(
      labels => [`kubernetes --selector ${labels}`, /--selector must be KEY=VALUE/] as const,
    ),
    ['kubernetes --namespace My_Space', /--namespace must be a Kubernetes name/],
    ['envoy-gateway --name -', /--name must be a Kubernetes name/],
    [
      'kubernetes',
      /admin .* must not be loopback, where .* cannot reach it: write 0\.0\.0\.0:9300, for kubernetes$/m,
      { admin: '127.0.0.1:9300' },
    ],
    [
      'kubernetes --listen [::1]:8888',
      /--listen must not be loopback, where .* reach Envoy: write 0\.0\.0\.0:8888, for kubernetes$/m,
    ],
    ['envoy', /listen of the configuration must have a port other than 0 \(any/, { listen: '127.0.0.1:0' }],
    ['kubernetes', /listen of the configuration must be .*, for kubernetes$/m, service],
    ['istio', /listen of the configuration must be .*, for istio$/m, service],
    ...['', '/etc', '/etc/account-authz', '/etc/account-authz/run', '/etc/envoy', '/app'].map(
      folder => ['kubernetes', noFolder, { listen: `unix:${folder}/authz.sock` }] as const,
    ),
    // An Envoy of Istio.
    [
      `istio ${waypoint} --cors-origin https://a.example`,
      /waypoint has no setting like --cors-origin: .* \(--attach gateway\)/,
      service,
    ],
    [`istio ${waypoint} --shadow`, /like --shadow: run the trial with/, service],
    [`istio ${waypoint} --selector istio=edge`, /like --selector: the policies name the Service/, service],
    [`istio --attach waypoint ${inMesh}`, /--upstream must be the Service that is checked/, service],
    [`istio ${waypoint}`, /public and protectedResource .* must be empty/, { ...service, ...open }],
    [`istio ${waypoint}`, /must not be loopback/],
    ['istio --attach waypoint --upstream orders:80', /--namespace .* must name the namespace of account/, service],
    [`istio --attach gateway ${inMesh}`, /--selector must have the labels/, service],
    [
      `istio --attach gateway --selector istio=edge ${inMesh}`,
      /--upstream must be the full name of a Service/,
      { ...service, ...open },
    ],
    [`istio --attach sidecar ${inMesh}`, /must be a loopback port, without tls/, service],
  ];
  for (const [written, problem, changes] of problems) {
    const args = typeof written === 'string' ? written.split(' ') : written;
    it(`exits 1 with one line for: render ${args.join(' ')}${changes === undefined ? '' : ` with ${JSON.stringify(changes)}`}`, async () => {
      const withConfig = args.includes('--config') ? args : [...args, '--config', config({ ...changes })];
      const { code, stdout, stderr } = await render(...withConfig);
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.match(/^account-authz render: .*\n$/);
      expect(stderr).to.match(problem);
    });
  }

  it('locates a problem of the configuration', async () => {
    const file = writeFixture('bad.yaml', { ...smallestConfig(), routes: [{ path: 'api' }] });
    const { code, stdout, stderr } = await render('envoy', '--config', file);
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
    expect(stderr).to.match(/bad\.yaml:1:\d+: routes\[0\]\.path: must start with "\/"\n$/);
  });

  // render may run on another machine.
  it('does not read the files that the configuration names', async () => {
    const file = config({ 'issuers.0.caFile': '/nowhere/ca.pem' });
    expect(await render('envoy', '--config', file)).to.include({ code: 0 });
  });
});

describe('render --out', () => {
  let folder: string;
  beforeEach(() => {
    folder = freshFolder();
  });

  const into = (out: string, ...options: readonly string[]) =>
    render('envoy', '--config', config(), '--out', out, ...options);

  it('writes the printed text into a folder that it creates', async () => {
    const out = join(folder, 'a', 'b');
    expect(await into(out)).to.deep.equal({ code: 0, stdout: 'envoy.yaml\n', stderr: '' });
    const { stdout } = await render('envoy', '--config', config());
    expect(readFileSync(join(out, 'envoy.yaml'), 'utf8')).to.equal(stdout);
    expect(readdirSync(out)).to.deep.equal(['envoy.yaml']);
  });

  it('writes the files that the bootstrap refers to', async () => {
    const tls = { certFile: '/tls.crt', keyFile: '/tls.key', clientCaFile: '/ca.crt' };
    const file = config({ listen: '0.0.0.0:9191', tls });
    expect(await render('envoy', '--config', file, `--out=${folder}`)).to.include({ code: 0, stderr: '' });
    expect(readdirSync(folder)).to.deep.equal(['client-certificate.yaml', 'envoy.yaml', 'server-authority.yaml']);
  });

  it('replaces a file that render wrote', async () => {
    await into(folder);
    expect(await into(folder, '--trusted-hops', '3')).to.include({ code: 0 });
    expect(readFileSync(join(folder, 'envoy.yaml'), 'utf8')).to.include('xff_num_trusted_hops: 3');
  });

  const kept: readonly (readonly [name: string, toKeep: (made: string) => string, problem: RegExp])[] = [
    ['a file that render did not write', () => 'admin: {}\n', /was not made by render/],
    ['an empty file', () => '', /was not made by render/],
    ['a file that was edited', made => made.replace('10s', '30s'), /was edited after render made it/],
    ['a file that was truncated', made => made.slice(0, 500), /was edited after render made it/],
  ];
  for (const [name, toKeep, problem] of kept) {
    it(`exits 1 and keeps ${name}`, async () => {
      await into(folder);
      const file = join(folder, 'envoy.yaml');
      const text = toKeep(readFileSync(file, 'utf8'));
      writeFileSync(file, text);
      const { code, stdout, stderr } = await into(folder);
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      expect(stderr).to.match(problem);
      expect(stderr).to.match(/^account-authz render: --out: .*envoy\.yaml .*\n$/);
      expect(readFileSync(file, 'utf8')).to.equal(text);
      expect(readdirSync(folder)).to.deep.equal(['envoy.yaml']);
    });
  }

  it('replaces an edited file with --force, and never one that render did not make', async () => {
    await into(folder);
    const file = join(folder, 'envoy.yaml');
    const made = readFileSync(file, 'utf8');
    writeFileSync(file, made.replace('10s', '30s'));
    expect(await into(folder, '--force')).to.include({ code: 0, stderr: '' });
    expect(readFileSync(file, 'utf8')).to.equal(made);
    writeFileSync(file, 'admin: {}\n');
    expect(await into(folder, '--force')).to.include({ code: 1 });
    expect(readFileSync(file, 'utf8')).to.equal('admin: {}\n');
  });

  it('writes no file when one of them must be kept', async () => {
    const tls = { certFile: '/tls.crt', keyFile: '/tls.key' };
    writeFileSync(join(folder, 'server-authority.yaml'), 'mine');
    const { code } = await render('envoy', '--config', config({ listen: '0.0.0.0:9191', tls }), '--out', folder);
    expect(code).to.equal(1);
    expect(existsSync(join(folder, 'envoy.yaml'))).to.equal(false);
  });

  it('exits 1 with one line for an unusable folder', async () => {
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(join(folder, 'envoy.yaml'));
    for (const out of [join(folder, 'file'), folder]) {
      const { code, stderr } = await into(out);
      expect(code).to.equal(1);
      expect(stderr).to.match(/^account-authz render: --out: .*\n$/);
    }
  });
});
