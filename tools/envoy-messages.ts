// Writes src/toolkit/lint/envoy-messages.json: the fields of the messages that the lint knows, from the descriptors that Envoy
// publishes as a Go module. Needs Go; run it when known-messages.ts gains a message, or Envoy a release: `tsx tools/envoy-messages.ts v1.40.0`.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { knownMessages } from '../src/toolkit/lint/known-messages.ts';

const [version = 'v1.40.0'] = process.argv.slice(2);
const go = 'github.com/envoyproxy/go-control-plane/envoy';
const known = Object.keys(knownMessages).filter(name => /\.v\d/.test(name) && !name.includes('istio'));
const fullNames = new Map(
  known.map(name => [/^(?:config|type|data|admin)\./.test(name) ? `envoy.${name}` : `envoy.extensions.${name}`, name]),
);
const packages = new Set(
  [...fullNames.keys()].map(name => {
    const [, path = ''] = /^envoy\.(.*?\.v\d\w*)\./.exec(name) ?? [];
    return `${go}/${path.replaceAll('.', '/')}`;
  }),
);
const program = `package main
import ("encoding/json"; "os"
"google.golang.org/protobuf/reflect/protoreflect"; "google.golang.org/protobuf/reflect/protoregistry"
${[...packages].map(name => `_ "${name}"`).join('\n')})
type field struct { Name, Type string; Values []string }
func main() {
  found := map[string][]field{}
  for _, name := range os.Args[1:] {
    descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
    if err != nil { panic(name) }
    all := descriptor.(protoreflect.MessageDescriptor).Fields()
    found[name] = []field{}
    for i := 0; i < all.Len(); i++ {
      each := field{Name: string(all.Get(i).Name())}
      value := all.Get(i)
      if value.IsMap() { value = value.MapValue() }
      if value.Message() != nil { each.Type = string(value.Message().FullName()) }
      if value.Enum() != nil { for j := 0; j < value.Enum().Values().Len(); j++ {
        each.Values = append(each.Values, string(value.Enum().Values().Get(j).Name())) } }
      found[name] = append(found[name], each)
    }
  }
  json.NewEncoder(os.Stdout).Encode(found)
}`;
const cwd = mkdtempSync(join(tmpdir(), 'envoy-messages-'));
writeFileSync(join(cwd, 'main.go'), program);
writeFileSync(join(cwd, 'go.mod'), 'module messages\n');
execFileSync('go', ['get', `${go}@${version}`], { cwd });
execFileSync('go', ['mod', 'tidy'], { cwd });
const output = execFileSync('go', ['run', '.', ...fullNames.keys()], { cwd, maxBuffer: 1e8, encoding: 'utf8' });
type Field = { readonly Name: string; readonly Type: string; readonly Values: readonly string[] | null };
const fields = Object.entries(JSON.parse(output) as Record<string, readonly Field[]>);
const toWord = ({ Name, Type, Values }: Field): string => {
  if (Values !== null) return `${Name}=${Values.join('|')}`;
  if (Type === 'google.protobuf.Any') return `${Name}:Any`;
  // A message of Google has a value alone: a duration, a wrapper, a struct.
  return Type === '' || Type.startsWith('google.') ? Name : `${Name}:${Type.replace(/^envoy\.(?:extensions\.)?/, '')}`;
};
const table = fields.map(([name, all]) => [fullNames.get(name), all.map(toWord).join(' ')]);
const file = new URL('../src/toolkit/lint/envoy-messages.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(Object.fromEntries(table), null, 2)}\n`);
