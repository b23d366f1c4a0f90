// `check-config`: prints every problem of a configuration and of the Envoy in front of it, or the effective settings, and warnings.
import { Document, Scalar, visit } from 'yaml';
import { permissionGrid } from '../authz/permission-grid.ts';
import { loadConfig, readConfigFile } from '../config/load.ts';
import { formatProblems, formatRemarks } from '../config/problems.ts';
import type { Config } from '../config/schema.ts';
import { parseConfidentialAdmin } from '../http/envoy-admin.ts';
import { nghttp2Warning } from '../service/nghttp2.ts';
import { alignColumns, isUnprintable, printable, replaceUnprintable, toYamlEscape } from '../text/printable.ts';
import { findRemarks } from '../toolkit/check-config/warnings.ts';
import { findAdminProblems, findFileProblems } from '../toolkit/lint/envoy-problems.ts';
import { coverOperations } from '../toolkit/openapi/coverage.ts';
import { loadOpenApi } from '../toolkit/openapi/document.ts';
import { readOperations } from '../toolkit/openapi/operations.ts';
import { formatCoverage, formatCoverageProblems, toCoverageJson } from '../toolkit/openapi/report.ts';
import { podSocket, withListen } from '../toolkit/render/default-listen.ts';
import { isRendered, toCommandLine } from '../toolkit/render/rendered-files.ts';
import { CommandError, defaultConfigFile, defineCommand, misconfigured } from './command.ts';

const usage = `account-authz check-config [--config FILE] [--envoy FILE | --envoy-admin URL] [--openapi FILE] [--strict] [--without-files]

Validates a configuration file and the files that it names, without network access.
Prints all problems with file, line and column, and warnings, to standard error, or the effective settings to standard output, with
what the configuration leaves to the API in comments.

  --config FILE      the configuration, ${defaultConfigFile} if not given
  --envoy FILE       an Envoy bootstrap (YAML or JSON), or a dump of a running Envoy (/config_dump?include_eds), as also
                     "istioctl proxy-config all -o json" and "egctl config envoy-proxy all" print it: reports its settings
                     that are dangerous with this configuration or do not agree with it
  --envoy-admin URL  the same for the dump of a running Envoy with this admin interface: https, or http to loopback
  --openapi FILE     an OpenAPI document 3.0 to 3.2, or Swagger 2.0 (YAML or JSON, at most 8 MiB): prints for each operation which
                     routes match, where its account is compared and who may call it, in the place of the settings, and names
                     what is left open or closed to everyone
  --base-path PATH   where the API stands, in the place of what the document says about its servers
  --json             prints { operations, problems } of --openapi
  --strict           warnings are problems
  --without-files    leaves out the files that the configuration names, for a machine that does not have them; a revocation
                     list that is there is checked

Example: account-authz check-config --config config.yaml --envoy envoy.yaml

Exit code: 0 valid, 1 problems or usage error.
`;

export const command = defineCommand({
  name: 'check-config',
  usage,
  options: {
    config: { type: 'string', default: defaultConfigFile },
    envoy: { type: 'string' },
    'envoy-admin': { type: 'string' },
    openapi: { type: 'string' },
    'base-path': { type: 'string' },
    json: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    'without-files': { type: 'boolean', default: false },
  },
  async run({ values, io }) {
    const { config: file, envoy, 'envoy-admin': adminText, openapi, 'base-path': basePath, json, strict } = values;
    if (openapi === undefined && (json || basePath !== undefined))
      throw new CommandError('--json and --base-path need --openapi');
    if (basePath !== undefined && !/^(?:$|\/)/.test(basePath))
      throw new CommandError('--base-path must start with "/"');
    if (envoy !== undefined && adminText !== undefined)
      throw new CommandError('--envoy and --envoy-admin exclude each other');
    const admin = adminText === undefined ? undefined : parseConfidentialAdmin(adminText);
    if (adminText !== undefined && admin === undefined) throw new CommandError(adminRule);

    const loaded = await loadConfig(file, {
      readsNamedFiles: !values['without-files'],
      readsRevocations: values['without-files'] ? 'if present' : true,
    });
    if (loaded.kind === 'misconfiguration') throw misconfigured(file, loaded);
    const { config, written } = loaded;
    const { warnings, information } = findRemarks(written);
    // The check may run on another machine than the service, so this one is never a problem.
    const oldNghttp2 = nghttp2Warning();
    if (oldNghttp2 !== undefined) io.stderr.write(`warning: ${oldNghttp2}\n`);
    io.stderr.write(strict ? formatProblems(file, warnings) : formatRemarks('warning: ', file, warnings));
    let isGood = !strict || warnings.length === 0;
    const name = envoy ?? admin?.href;
    let counts = '';
    if (name !== undefined) {
      const lint = (each: Config) => (admin ? findAdminProblems(admin, each) : findFileProblems(name, each));
      let found = await lint(config);
      // Judging twice takes twice the time: only what names the socket may be of such a pod.
      const namesSocket =
        found.bytes === undefined || Buffer.from(found.bytes).includes(podSocket.slice('unix:'.length));
      const isOfPod = found.findings > 0 && namesSocket && (await leavesListenOut(file));
      const inPod = isOfPod ? await lint({ ...config, listen: podSocket }) : found;
      if (inPod.findings < found.findings) {
        found = inPod;
        io.stderr.write(`${strict ? '' : 'warning: '}${file}: listen: ${podSocketRemark}\n`);
        isGood &&= !strict;
      }
      const { lines, findings, notJudged, bytes } = found;
      io.stderr.write(lines);
      if (findings > 0 && bytes !== undefined) {
        const command = toCommandLine(['account-authz', 'render', 'envoy-parts', '--config', file]);
        // A file can say anything in its first line, and a reader would copy the command into a shell: it is not repeated here.
        const remedy = isRendered(bytes) ? 'run the command in the first line of the file again' : `run: ${command}`;
        io.stderr.write(`account-authz check-config: to print the settings to use, ${remedy}\n`);
      }
      counts = `${findings} finding${findings === 1 ? '' : 's'}, ${notJudged} not judged`;
      isGood &&= findings === 0 && (!strict || notJudged === 0);
    }
    if (openapi !== undefined) {
      const document = await loadOpenApi(openapi);
      const coverage =
        document.kind === 'problem'
          ? { operations: [], problems: [{ severity: 'error', message: document.problem } as const] }
          : coverOperations(readOperations(document, basePath), config);
      const { operations, problems } = coverage;
      io.stdout.write(json ? toCoverageJson(coverage) : operations.length === 0 ? '' : formatCoverage(operations));
      if (!json) io.stderr.write(formatCoverageProblems(openapi, problems));
      isGood &&= !problems.some(({ severity }) => severity === 'error' || (strict && severity === 'warning'));
    }
    if (!isGood) {
      if (name !== undefined) io.stderr.write(`${printable(name, 1024)}: ${counts}\n`);
      return 1;
    }
    // Comments, so that the output is a valid configuration.
    if (openapi === undefined)
      io.stdout.write(toYaml(written.config) + formatRemarks('# information: ', file, information) + toGrid(config));
    if (name !== undefined && !json)
      io.stdout.write(`# ${printable(name, 1024)}: no dangerous setting found: ${counts}\n`);
    return 0;
  },
});

const podSocketRemark = `is left out, and Envoy asks at ${podSocket}: run account-authz with the config.yaml of render kubernetes, which says so`;

async function leavesListenOut(file: string): Promise<boolean> {
  const content = await readConfigFile(file);
  return content.kind === 'bytes' && withListen(Buffer.from(content.bytes).toString(), podSocket) !== undefined;
}

const adminRule = '--envoy-admin must be a URL such as http://127.0.0.1:9901: https, or http to a loopback address';

// The output is a valid configuration, in which lists must not be empty.
function toYaml(config: Config): string {
  const { headers, query, ...others } = config.account;
  const account = { ...(headers.length > 0 && { headers }), ...(query.length > 0 && { query }), ...others };
  const document = new Document({ ...config, account }, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && isUnprintable(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  // Unprintable characters stand in double quotes now, except for the line ends of the document.
  return document
    .toString({ lineWidth: 0 })
    .split('\n')
    .map(line => replaceUnprintable(line, toYamlEscape))
    .join('\n');
}

/** Who may do what: a line for each route and role, and for each route and scope. */
function toGrid(config: Config): string {
  const kinds = config.scopes === undefined ? (['roles'] as const) : (['roles', 'scopes'] as const);
  const lines = kinds.flatMap(kind => {
    const cellsOf = permissionGrid(config, kind);
    const rows = config.routes.flatMap(({ path }, i) =>
      cellsOf(i).map(({ name, grants }) => [path, name, grants.join(', ') || 'nothing']),
    );
    return alignColumns([['route', kind.slice(0, -1), 'methods'], ...rows]);
  });
  return lines.map(line => `# ${line}\n`).join('');
}
