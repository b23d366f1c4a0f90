// render for Kubernetes, Istio and Envoy Gateway.
import { expect } from 'chai';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { changed, configOf, writeFixture } from '../../lab/config-file.ts';
import type { Part } from '../toolkit/lint/shipped.ts';
import { config, filesOf, render } from './render-lab.ts';

const twoPaths = { routes: [{ path: '/api/orders/:account_id/*' }, { path: '/v2/billing/*' }] };

describe('render kubernetes', () => {
  it('writes a component with configuration, bootstrap, both sidecars and their shared socket', async () => {
    const settings = { ...twoPaths, listen: 'unix:/run/authz/authz.sock', admin: '0.0.0.0:9292' };
    const file = config(settings);
    const files = await filesOf('kubernetes', '--config', file, '--selector team=blue,authz=on --namespace shop');
    const [component] = files['kustomization.yaml'] ?? [];
    expect(component).to.include({ kind: 'Component', namespace: 'shop' });
    const generated = component.configMapGenerator.flatMap((each: Part) => each.files);
    const patches = component.patches.flatMap(({ path }: Part) => path ?? []);
    expect([...generated, ...patches, 'kustomization.yaml'].sort()).to.deep.equal(Object.keys(files));
    for (const { target } of component.patches) expect(target.labelSelector).to.equal('team=blue,authz=on');
    expect(await configOf(files['config.yaml']?.[0])).to.deep.equal(await configOf(changed(settings)));
    expect(files['envoy.yaml']).to.deep.equal([parse((await render('envoy', '--config', file)).stdout)]);
    const containers = patches.flatMap((name: string) => files[name]?.[0].spec.template.spec.initContainers);
    const mounted = containers.flatMap((each: Part) => each.volumeMounts.map(({ mountPath }: Part) => mountPath));
    expect(mounted.filter((path: string) => path === '/run/authz')).to.have.length(2);
    const admin = containers.find(({ name }: Part) => name === 'account-authz').ports[0].containerPort;
    expect(admin).to.equal(9292);
  });

  const text = stringify({
    admin: '0.0.0.0:9292',
    issuers: [{ issuer: 'https://idp.test', audiences: ['a'], jwksUrl: 'https://idp.test/' }],
    routes: [{ path: '/a' }],
    roles: { owner: ['*'] },
  });
  for (const [form, written] of [
    ['a block', text],
    ['a block under comments and a mark', `# one\n---\n# two\n\n${text}`],
    ['an indented block', text.replace(/^(?=.)/gm, '  ')],
    ['JSON', JSON.stringify(parse(text))],
    ['JSON under a comment, over lines', `# one\n${JSON.stringify(parse(text), undefined, 2)}\n`],
  ] as const) {
    it(`uses a socket where the configuration leaves listen out: ${form}`, async () => {
      const file = writeFixture('no-listen.yaml', written);
      const files = await filesOf('kubernetes', '--config', file);
      const { 'config.yaml': [made] = [], 'envoy.yaml': bootstrap = [] } = files;
      expect(made).to.deep.equal({ listen: 'unix:/run/account-authz/authz.sock', ...parse(text) });
      expect(JSON.stringify(bootstrap)).to.include('{"pipe":{"path":"/run/account-authz/authz.sock"}}');
      const envoy = writeFixture('socket-envoy.yaml', stringify(bootstrap[0]));
      const check = (...more: readonly string[]) =>
        runCommand('check-config', ['--config', file, '--envoy', envoy, ...more]);
      const remark =
        /listen: is left out, and Envoy asks at unix:\/run\/account-authz\/authz.sock: run account-authz with the config.yaml/;
      expect(await check())
        .to.include({ code: 0 })
        .and.to.have.property('stderr')
        .that.matches(remark);
      expect(await check('--strict')).to.include({ code: 1 });
    });
  }

  it('uses the images and the ports of the options', async () => {
    const options = ['--image', 'r.example/authz:1', '--envoy-image', 'r.example/envoy@sha256:0a'];
    const ports = ['--readiness-port', '8181', '--envoy-admin-port', '9001'];
    const files = await filesOf('kubernetes', '--config', config(twoPaths), ...options, ...ports);
    const [authz] = files['account-authz.yaml']?.[0].spec.template.spec.initContainers ?? [];
    const [envoy] = files['envoy-container.yaml']?.[0].spec.template.spec.initContainers ?? [];
    expect([authz.image, envoy.image]).to.deep.equal([options[1], options[3]]);
    const admin = ['--envoy-admin', 'http://127.0.0.1:9001'];
    expect(authz.args.slice(-2)).to.deep.equal(admin);
    expect(authz.lifecycle.preStop.exec.command.slice(3, 5)).to.deep.equal(admin);
    expect(envoy.ports.at(-1)).to.deep.equal({ name: 'envoy-ready', containerPort: 8181 });
  });

  it('names the files of the configuration that it does not mount, as the pod looks for them', async () => {
    const changes = {
      'issuers.0.caFile': 'ca.pem',
      'issuers.0.clientCertFile': '/etc/client/tls.crt',
      'issuers.0.clientKeyFile': '/etc/client/tls.key',
      revocation: { file: '../revocation/revoked.jsonl' },
      'keys.cacheDirectory': '/var/cache/account-authz',
    };
    const { code, stderr } = await render('kubernetes', '--config', config(changes));
    expect({ code, stderr }).to.deep.equal({
      code: 0,
      stderr:
        'account-authz render: the component mounts config.yaml alone: mount in the container account-authz too: /etc/revocation/revoked.jsonl, /etc/account-authz/ca.pem, /etc/client/tls.crt, /etc/client/tls.key, /var/cache/account-authz (writable)\n',
    });
  });

  it('raises the memory limit by 6 KiB for each cached token beyond 10,000', async () => {
    for (const [maxTokens, memory] of [
      [0, '256Mi'],
      [10_000, '256Mi'],
      [200_000, '1370Mi'],
    ]) {
      const files = await filesOf('kubernetes', '--config', config({ cache: { maxTokens } }));
      const [container] = files['account-authz.yaml']?.[0].spec.template.spec.initContainers ?? [];
      expect(container.resources.limits.memory).to.equal(memory);
    }
  });

  it('gives the pod time for the drain, the stops of the app and of Envoy, and graceSeconds', async () => {
    for (const [graceSeconds, seconds] of [
      [0, 35],
      [300, 335],
    ]) {
      const files = await filesOf('kubernetes', '--config', config({ shutdown: { graceSeconds } }));
      expect(files['account-authz.yaml']?.[0].spec.template.spec.terminationGracePeriodSeconds).to.equal(seconds);
    }
  });

  it('prints the files as YAML documents, each with its name', async () => {
    const { stdout } = await render('kubernetes', '--config', config());
    const names = Array.from(stdout.matchAll(/^# Made by .*\n# File: (.*)$/gm), ([, name]) => name);
    expect(names).to.deep.equal([
      'kustomization.yaml',
      'envoy-container.yaml',
      'account-authz.yaml',
      'socket.yaml',
      'envoy.yaml',
      'config.yaml',
    ]);
    expect(parseAllDocuments(stdout)).to.have.length(names.length);
  });
});

describe('render istio', () => {
  it('checks every configured path, refuses others, and connects to account-authz in the pod', async () => {
    const args = ['--config', config({ ...twoPaths, listen: '127.0.0.1:9500' }), '--upstream', '127.0.0.1:9000'];
    const files = await filesOf('istio', ...args, '--selector', 'app=orders', '--namespace', 'shop');
    const paths = ['/api/orders', '/api/orders/*', '/v2/billing', '/v2/billing/*'];
    const [custom, allow] = files['authorization-policy.yaml'] ?? [];
    expect(custom.spec.rules).to.deep.equal([{ to: [{ operation: { paths } }] }]);
    expect(allow.spec.rules[0].to).to.deep.equal([{ operation: { ports: ['9000'], paths } }]);
    for (const { metadata, spec } of [custom, allow]) {
      expect([metadata.namespace, spec.selector.matchLabels]).to.deep.equal(['shop', { app: 'orders' }]);
    }
    expect(files['service-entry.yaml']?.[0].spec.ports[0].number).to.equal(9500);
    expect(files['mesh-config.yaml']?.[0].extensionProviders[0].envoyExtAuthzGrpc.port).to.equal(9500);
    expect(files['envoy-filter.yaml']?.[0].spec.workloadSelector.labels).to.deep.equal({ app: 'orders' });
  });

  const service = { ...twoPaths, listen: '0.0.0.0:9500', listenInsecure: true };
  const attached = (attach: string, ...options: readonly string[]): string[] =>
    `--attach ${attach} --namespace shop --authz-namespace authz`.split(' ').concat(options);
  const labels = ['--selector', 'istio=edge'];
  const cors = ['--cors-origin', 'https://app.example.com'];

  it('attaches to a waypoint by the name of the Service, without an EnvoyFilter, and asks account-authz as a Service', async () => {
    const args = attached('waypoint', '--upstream', 'orders:80');
    const files = await filesOf('istio', '--config', config(service), ...args);
    const names = ['authorization-policy.yaml', 'destination-rule.yaml', 'mesh-config.yaml'];
    expect(Object.keys(files)).to.have.members(names);
    const policies = files['authorization-policy.yaml'] ?? [];
    expect(policies.map(({ spec }) => spec.action)).to.deep.equal(['CUSTOM', 'ALLOW']);
    for (const { spec } of policies) {
      expect(spec).to.not.have.property('selector');
      expect(spec.targetRefs).to.deep.equal([{ group: '', kind: 'Service', name: 'orders' }]);
      expect(spec.rules).to.have.length(1);
      expect(spec.rules[0].to[0].operation).to.not.have.property('ports');
    }
    expect(policies.at(1)?.spec.rules[0].when).to.deep.include.members([
      { key: 'experimental.envoy.filters.http.ext_authz[account-authz]', values: ['allow'] },
      { key: 'request.headers[x-http-method-override]', notValues: ['*'] },
      { key: 'request.headers[x-original-url]', notValues: ['*'] },
    ]);
    const host = 'account-authz.authz.svc.cluster.local';
    expect(files['mesh-config.yaml']?.[0].extensionProviders[0].envoyExtAuthzGrpc).to.include({
      service: host,
      port: 9500,
    });
    const [rule] = files['destination-rule.yaml'] ?? [];
    expect([rule.metadata.namespace, rule.spec.host]).to.deep.equal(['authz', host]);
    const { stdout } = await render('istio', '--config', config(service), ...args);
    expect(stdout.replaceAll(/\n# /g, ' ')).to.match(
      /cannot remove a forged header before the check; exempt a route from the check; .*What is not for the Service, or does not pass its waypoint, is not checked/,
    );
  });

  for (const [attach, context, port, upstream, cluster, options] of [
    ['sidecar', 'SIDECAR_INBOUND', 80, '127.0.0.1:80', 'inbound|80||', ['--selector', 'app=orders']],
    [
      'gateway',
      'GATEWAY',
      undefined,
      'orders.shop.svc.cluster.local:80',
      'outbound|80||orders.shop.svc.cluster.local',
      labels,
    ],
  ] as const) {
    it(`answers preflight requests before the check in the Envoy of a ${attach}, and serves public paths there`, async () => {
      const listen = attach === 'sidecar' ? '127.0.0.1:9191' : '0.0.0.0:9191';
      const file = config({ ...twoPaths, listen, listenInsecure: true, public: [{ path: '/healthz' }] });
      const place = attach === 'sidecar' ? ['--namespace', 'shop'] : attached(attach);
      const args = [...place, '--upstream', upstream, ...options, ...cors];
      const [{ spec }] = (await filesOf('istio', '--config', file, ...args))['envoy-filter.yaml'] ?? [];
      const patches: Part[] = spec.configPatches;
      expect([...new Set(patches.map(({ match }) => match.context))]).to.deep.equal([context]);
      const added = patches.filter(({ applyTo, patch }) => applyTo === 'HTTP_FILTER' && patch.operation !== 'MERGE');
      expect(
        added.map(({ patch: { operation, value } }) => [
          operation,
          value.name,
          value.typed_config['@type'].replace(/.*\./, ''),
        ]),
      ).to.deep.equal([
        ['INSERT_BEFORE', 'account-authz.request-trailers', 'HeaderMutation'],
        ['INSERT_BEFORE', 'account-authz.cors', 'Cors'],
        ['INSERT_AFTER', 'account-authz.only-allowed', 'RBAC'],
      ]);
      expect(added.at(-1)?.match.listener.portNumber).to.equal(port);
      const host = patches.find(({ applyTo }) => applyTo === 'VIRTUAL_HOST')?.patch.value;
      expect(host.typed_per_filter_config['account-authz.cors'].allow_origin_string_match).to.deep.equal([
        { exact: 'https://app.example.com' },
      ]);
      const route = patches.find(({ patch }) => patch.value.name === 'public /healthz')?.patch.value;
      expect(route.route.cluster).to.equal(cluster);
    });
  }
});

describe('render --name', () => {
  const waypoint = ['--attach', 'waypoint', '--upstream', 'orders:80', '--namespace', 'shop'];

  it('limits the kubernetes patches to this Deployment', async () => {
    const files = await filesOf('kubernetes', '--config', config(twoPaths), '--name', 'orders');
    const targets = files['kustomization.yaml']?.[0].patches.map(({ target }: Part) => target);
    const deployments = targets.filter(({ kind }: Part) => kind === 'Deployment');
    expect(deployments.map(({ name }: Part) => name)).to.deep.equal(deployments.map(() => 'orders'));
    expect((await render('kubernetes', '--config', config(twoPaths), '--name', 'orders')).stdout).to.match(
      /the Deployment orders with the label\n# account-authz\/sidecar=true, which its Service needs too\. Where none has it, kustomize says nothing/,
    );
  });

  for (const [where, settings, options, provider] of [
    ['pod', twoPaths, [], 'account-authz'],
    ['Service', { ...twoPaths, listen: '0.0.0.0:9500', listenInsecure: true }, waypoint, 'orders-account-authz'],
  ] as const)
    it(`prefixes the names of the istio objects; account-authz in a ${where} is the provider ${provider}`, async () => {
      const files = await filesOf('istio', '--config', config(settings), '--name', 'orders', ...options);
      const policies = files['authorization-policy.yaml'] ?? [];
      const names = policies.map(({ metadata }: Part) => metadata.name);
      expect(names).to.deep.equal(['orders-account-authz', 'orders-nothing-else']);
      const providers = [policies[0]?.spec.provider, files['mesh-config.yaml']?.[0].extensionProviders[0]];
      expect(providers.map(({ name }) => name)).to.deep.equal([provider, provider]);
    });
});

describe('render envoy-gateway', () => {
  const service = { ...twoPaths, listen: '0.0.0.0:9500', listenInsecure: true };

  it('routes every configured path to the Service, and checks it with account-authz', async () => {
    const args = ['--config', config(service), '--upstream', 'orders:9000', '--name', 'shop', '--authz-host', 'authz'];
    const files = await filesOf('envoy-gateway', ...args, '--cors-origin https://app.example.com --trusted-hops 1');
    const [route] = files['http-route.yaml'] ?? [];
    expect(route.spec.rules[0].matches.map((it: Part) => it.path.value)).to.deep.equal(['/api/orders', '/v2/billing']);
    expect(route.spec.rules[0].backendRefs[0]).to.include({ name: 'orders', port: 9000 });
    const [policy] = files['security-policy.yaml'] ?? [];
    expect(policy.spec.targetRefs[0].name).to.equal(route.metadata.name);
    expect(policy.spec.extAuth.grpc.backendRefs[0]).to.include({ name: 'authz', port: 9500 });
    expect(policy.spec.cors).to.deep.include({ allowOrigins: ['https://app.example.com'], allowCredentials: false });
    expect(files['client-traffic-policy.yaml']?.[0].spec.clientIPDetection.xForwardedFor.numTrustedHops).to.equal(1);
    expect(Object.keys(files)).to.not.include('backend-tls.yaml');
  });

  it('names the Gateway with --gateway, and the route and its policy with --name', async () => {
    const tls = { certFile: '/tls.crt', keyFile: '/tls.key' };
    const options = ['--config', config({ ...service, tls }), '--name', 'orders', '--gateway', 'public'];
    const files = await filesOf('envoy-gateway', ...options);
    const [route] = files['http-route.yaml'] ?? [];
    const [policy] = files['security-policy.yaml'] ?? [];
    const [traffic] = files['client-traffic-policy.yaml'] ?? [];
    expect([route, policy].map(({ metadata }) => metadata.name)).to.deep.equal(['orders', 'orders']);
    expect(policy.spec.targetRefs[0].name).to.equal('orders');
    expect([route.spec.parentRefs[0].name, traffic.spec.targetRefs[0].name]).to.deep.equal(['public', 'public']);
  });

  it('finds account-authz in the namespace of --authz-namespace, with the grant for it', async () => {
    const tls = { certFile: '/tls.crt', keyFile: '/tls.key' };
    const args = ['--config', config({ ...service, tls }), '--namespace', 'shop', '--authz-namespace', 'authz'];
    const files = await filesOf('envoy-gateway', ...args);
    const [policy] = files['security-policy.yaml'] ?? [];
    expect(policy.spec.extAuth.grpc.backendRefs[0]).to.include({ name: 'account-authz', namespace: 'authz' });
    const [grant] = files['reference-grant.yaml'] ?? [];
    expect(grant.metadata.namespace).to.equal('authz');
    expect(grant.spec).to.deep.equal({
      from: [{ group: 'gateway.envoyproxy.io', kind: 'SecurityPolicy', namespace: 'shop' }],
      to: [{ group: '', kind: 'Service', name: 'account-authz' }],
    });
    expect(files['backend-tls.yaml']?.map(({ metadata }) => metadata.namespace)).to.deep.equal(['authz', 'shop']);
  });

  it('merges with the policy of the Gateway with --merge alone, and warns without it that it replaces it', async () => {
    const plain = await render('envoy-gateway', '--config', config(service));
    expect(plain.stdout)
      .to.match(/# It replaces a SecurityPolicy of the Gateway .* render with --merge/)
      .and.not.include('mergeType');
    const { stdout } = await render('envoy-gateway', '--config', config(service), '--merge');
    expect(stdout).to.include('mergeType: StrategicMerge').and.not.include('It replaces');
  });

  // Else its CORS policy takes the allow lists of the Gateway from public routes.
  it('merges the policy of public routes too', async () => {
    const file = config({ ...service, public: [{ path: '/healthz' }] });
    const options = ['--config', file, '--merge', '--cors-origin', 'https://app.example.com'];
    const policies = Object.values(await filesOf('envoy-gateway', ...options))
      .flat()
      .filter(({ kind }) => kind === 'SecurityPolicy');
    expect(policies.map(({ spec }) => spec.mergeType)).to.deep.equal(['StrategicMerge', 'StrategicMerge']);
  });

  it('gives up a connection to a pod that hangs after six seconds', async () => {
    const files = await filesOf('envoy-gateway', '--config', config(service));
    const { http2 } = files['security-policy.yaml']?.[0].spec.extAuth.grpc.backendSettings ?? {};
    expect(http2.connectionKeepalive).to.deep.equal({ interval: '5s', timeout: '1s' });
  });

  for (const target of ['envoy', 'envoy-parts', 'kubernetes', 'istio', 'envoy-gateway', 'kgateway']) {
    it(`lets pages send the headers of --cors-header and read those of --cors-expose: ${target}`, async () => {
      const options = ['--cors-origin', 'https://app.example.com', '--cors-header', 'idempotency-key'];
      const file = config(/gateway/.test(target) ? service : {});
      const { stdout } = await render(target, '--config', file, ...options, '--cors-expose', 'X-Total-Count');
      for (const name of ['idempotency-key', 'x-total-count', 'etag']) expect(stdout).to.include(name);
    });
  }

  it('warns of --authz-host where listen has an address of its own, and uses it where listen has every address', async () => {
    for (const [listen, stderr] of [
      ['10.0.0.5:9191', /^account-authz render: --authz-host is not used: /],
      ['0.0.0.0:9191', /^$/],
    ] as const) {
      const file = config({ listen, listenInsecure: true });
      expect((await render('envoy', '--config', file, '--authz-host', 'authz.test')).stderr).to.match(stderr);
    }
  });

  it('uses the Service of account-authz and warns when listen is loopback or a socket', async () => {
    for (const listen of ['127.0.0.1:9191', 'unix:/run/authz.sock']) {
      const { code, stdout, stderr } = await render('envoy-gateway', '--config', config({ ...twoPaths, listen }));
      expect(stderr).to.match(/^account-authz render: listen of the configuration is loopback or a socket: .*\n$/);
      expect(code).to.equal(0);
      expect(stdout).to.contain('name: account-authz, port: 9191');
    }
  });

  for (const [target, ...options] of [
    ['envoy', '--authz-host', 'authz.example'],
    ['envoy-parts', '--authz-host', 'authz.example'],
    ['envoy-parts', '--upstream', 'orders:80'],
    ['envoy-parts', '--shadow', '--upstream', '/v2=orders:80'],
    ['istio', '--upstream', 'orders:80'],
    ['istio', '--authz-host', 'authz.example'],
    ['istio', '--namespace', 'shop', '--authz-namespace', 'authz'],
  ] as const)
    it(`warns of ${options.join(' ')}, of which ${target} does not print all here`, async () => {
      const { code, stderr } = await render(target, '--config', config(twoPaths), ...options);
      expect({ code, stderr }).to.deep.include({ code: 0 });
      expect(stderr).to.match(
        new RegExp(`^account-authz render: ${options.at(-2)} .*is (?:not (?:used|printed)|used for its port alone)`),
      );
    });

  // A policy without a target would leave the route unprotected.
  it('sets the labels of --selector on the route, which the policy targets by name', async () => {
    const files = await filesOf('envoy-gateway', '--config', config(service), '--selector', 'app=orders');
    expect(files['http-route.yaml']?.[0].metadata.labels).to.deep.equal({ app: 'orders' });
    expect(files['security-policy.yaml']?.[0].spec.targetRefs).to.deep.equal([
      { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'subscriptions' },
    ]);
  });

  it('refuses routes with more paths than one rule may have', async () => {
    const routes = Array.from({ length: 65 }, (_, i) => ({ path: `/api/v${i}/*` }));
    expect(await render('envoy-gateway', '--config', config({ ...service, routes: routes.slice(1) }))).to.include({
      code: 0,
    });
    const { code, stderr } = await render('envoy-gateway', '--config', config({ ...service, routes }));
    expect(code).to.equal(1);
    expect(stderr).to.match(/^account-authz render: routes of the configuration must lead to at most 64 paths, .*\n$/);
  });

  it('removes look-alikes of account headers, and keeps the headers themselves', async () => {
    const file = config({ ...service, account: { headers: ['x-my-org-id', 'tenant'] } });
    const files = await filesOf('envoy-gateway', '--config', file);
    const removed = files['client-traffic-policy.yaml']?.[0].spec.headers.earlyRequestHeaders.removeOnMatch;
    const pattern = new RegExp(`^(?:${removed.at(-1).value})$`);
    for (const name of ['x.my-org-id', 'x-my.org-id', 'x-my-org.id', 'x.my.org.id']) expect(name).to.match(pattern);
    for (const name of ['x-my-org-id', 'xamy-org-id', 'tenant']) expect(name).not.to.match(pattern);
  });
});
