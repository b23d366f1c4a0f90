// No generated target reaches the account of somebody else at any upstream, and a reader that makes a mistake is detected.
import { expect } from 'chai';
import { type Allows, comparePaths, type Layout, layouts, type PathComparison, wideLayout } from './path-comparison.ts';
import { startProductReader } from './product-reader.ts';

// A fixed seed, so that failures are reproducible; `npm run paths` uses others.
const seed = Number(process.env.PATHS_SEED ?? 1);
const targets = 3000;

describe(`generated targets of seed ${seed}`, () => {
  for (const layout of layouts) {
    describe(`${targets}, ${layout.name}`, () => {
      let comparison: PathComparison;

      before(async () => {
        const product = await startProductReader(layout);
        try {
          comparison = await comparePaths({ targets, seed, layout, allows: product.allows });
        } finally {
          await product.stop();
        }
      });

      it('are refused if an upstream serves another account than the token’s', () => {
        expect(comparison.differences).to.deep.equal([]);
        expect(comparison.targets).to.equal(targets);
      });

      it('are allowed often enough, most of them manipulated', () => {
        expect(comparison.allowed / targets).to.be.above(0.15);
        expect(comparison.allowedThoughTricky / comparison.allowed).to.be.above(0.3);
      });

      it('are served for an account if they are allowed', () => {
        expect(comparison.served / comparison.allowed).to.be.above(0.3);
      });

      it('often reach another account if they are not refused', () => {
        expect(comparison.attacksRefused).to.be.above(150);
      });
    });
  }

  // Sensitivity of the comparison: readers with common mistakes replace the product.
  const [beside, first] = layouts as readonly [Layout, Layout, ...Layout[]];
  const mistaken: readonly { readonly name: string; readonly layout: Layout; readonly allows: Allows }[] = [
    { name: 'decodes the path', layout: first, allows: (target, account) => accountAt(2, decoded(target)) === account },
    {
      name: 'resolves nothing and looks at one place',
      layout: first,
      allows: (target, account) => accountAt(2, target) === account,
    },
    {
      name: 'resolves by URL and asks for the case',
      layout: beside,
      allows: (target, account) => bySpelling(target, account),
    },
    {
      name: 'does not look at the query',
      layout: first,
      allows: (target, account) => plain(target) && accountAt(2, target) === account,
    },
    {
      name: 'permits every character and compares as sent',
      layout: wideLayout,
      allows: (target, account) =>
        !/\/\.{0,2}(?:\/|$)|[;\\]/.test(target) &&
        accountAt(0, target) === 'files' &&
        accountAt(1, target) === account &&
        !['admin', 'stats', 'private'].includes(accountAt(2, target) ?? ''),
    },
  ];
  for (const { name, layout, allows } of mistaken) {
    it(`detects a reader that ${name}`, async () => {
      const { differences } = await comparePaths({ targets, seed, layout, allows, maxDifferences: 1 });
      expect(differences).to.not.be.empty;
    });
  }
});

function accountAt(index: number, target: string): string | undefined {
  return target.split('?')[0]?.split('/').slice(1)[index];
}

function decoded(target: string): string {
  try {
    return decodeURIComponent(target);
  } catch {
    return '';
  }
}

function plain(target: string): boolean {
  const path = target.split('?')[0] ?? '';
  return /^\/[A-Za-z0-9._~:@/-]+$/.test(path) && !/\/\.{0,2}(?:\/|$)/.test(path);
}

// Matches routes without case.
function bySpelling(target: string, account: string): boolean {
  const path = target.split('?')[0] ?? '';
  if (!plain(target) || target.includes('?')) return false;
  const [, found] = /^\/api\/subscriptions\/accounts\/([^/]+)/.exec(path) ?? [];
  return path.startsWith('/api/subscriptions/') ? (found ?? account) === account : false;
}
