// Run by hand after a change of envoy.yaml or of an overlay: npx tsx test/k8s/write-derived-files.ts
import { writeDerivedFiles } from './derived-files.ts';

await writeDerivedFiles();
