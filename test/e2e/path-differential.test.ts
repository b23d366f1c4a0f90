// Generated targets through Envoy's normalization, the product and Express 5: the handler runs for the account of the token only.
import { expect } from 'chai';
import { defaultEnvoyVersion } from '../../lab/envoy.ts';
import { comparePathsThroughEnvoy, type EnvoyComparison } from '../assurance/paths/envoy-comparison.ts';
import { layouts } from '../assurance/paths/path-comparison.ts';

const seed = Number(process.env.PATHS_SEED ?? 1);
const targets = 1200;
const http2Targets = 150;

describe(`generated targets of seed ${seed} through Envoy ${defaultEnvoyVersion}`, () => {
  // The shipped envoy.yaml routes only /api/subscriptions to the upstream.
  for (const layout of layouts.slice(0, 2)) {
    describe(`${targets} over HTTP/1.1 and ${http2Targets} over HTTP/2, ${layout.name}`, () => {
      let comparison: EnvoyComparison;

      before(async () => {
        comparison = await comparePathsThroughEnvoy({
          seed,
          layout,
          targets,
          http2Targets,
          version: defaultEnvoyVersion,
        });
      });

      it('reach no handler for another account than the token’s', () => {
        expect(comparison.differences).to.deep.equal([]);
      });

      it('are all in the counts', () => {
        const { served, refusedByProduct, refusedByEnvoy } = comparison;
        expect(served + refusedByProduct + refusedByEnvoy).to.equal(targets + http2Targets);
      });

      it('reach the handler often, also after normalization by Envoy', () => {
        expect(comparison.served).to.be.above(250);
        expect(comparison.servedForAccount).to.be.above(150);
        expect(comparison.servedThoughTricky).to.be.above(100);
        expect(comparison.normalized).to.be.above(30);
      });

      it('are refused by both: some by Envoy, some by the product', () => {
        expect(comparison.refusedByProduct).to.be.above(200);
        expect(comparison.refusedByEnvoy).to.be.above(100);
      });
    });
  }
});
