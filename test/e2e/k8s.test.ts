// The overlays of k8s/ with their own Envoy: their bootstrap and their configuration, as mounted, in a real Envoy and the
// built product. The other two need a control plane: npm run cluster.
import { expect } from 'chai';
import { verifyStandalone } from '../deploy/k8s/real/standalone.ts';
import { installEnvoys } from './lab.ts';

describe('k8s/: the Envoy and the product of an overlay', () => {
  before(async function () {
    this.timeout(600_000); // the first run builds kustomize
    await installEnvoys();
  });

  for (const overlay of ['envoy-sidecar', 'service', 'demo'] as const) {
    it(`answer every request as promised: ${overlay}`, async () => {
      const rows = await verifyStandalone(overlay);
      expect(rows.filter(({ good }) => !good)).to.deep.equal([]);
      expect(rows).to.have.length.of.at.least(20);
    });
  }
});
