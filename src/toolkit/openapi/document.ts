// Reads an OpenAPI document (3.0, 3.1, 3.2) or Swagger 2.0, in YAML or JSON, or names what the file is in its place.
import { isUtf8 } from 'node:buffer';
import { CORE_SCHEMA, load, mergeTag, YAMLException } from 'js-yaml';
import { loadBoundedFile } from '../../files/bounded-file.ts';
import { isJsonObject, memberOf, parseBoundedJson } from '../../json/strict-json.ts';
import { printable } from '../../text/printable.ts';
import { type Problem, problem } from '../../text/problem.ts';

export interface OpenApiDocument {
  readonly kind: 'openapi';
  /** 2 for Swagger 2.0. */
  readonly major: 2 | 3;
  readonly root: Readonly<Record<string, unknown>>;
}

const maxBytes = 8 * 1024 * 1024;
const maxDepth = 200;
// Many values of half a megabyte of text are brackets alone.
const jsonBounds = { maxDepth, maxValues: 4_000_000 };
// Aliases share one value, so they cost nothing before somebody walks through them.
const yaml = { schema: CORE_SCHEMA.withTags(mergeTag), maxDepth };

/** The problem is the rest of a sentence about the file. */
export async function loadOpenApi(file: string): Promise<OpenApiDocument | Problem> {
  const content = await loadBoundedFile(file, maxBytes);
  return content.kind === 'problem' ? content : parseOpenApi(content.bytes);
}

export function parseOpenApi(bytes: Uint8Array): OpenApiDocument | Problem {
  if (!isUtf8(bytes)) return problem('is not text in UTF-8');
  const text = new TextDecoder().decode(bytes);
  if (text.trim() === '') return problem('is empty');
  const foreignText = foreignTexts.find(([pattern]) => pattern.test(text));
  if (foreignText !== undefined) return notOpenApi(foreignText[1]);
  const json = /^\s*[{[]/.test(text) ? parseBoundedJson(Buffer.from(text), jsonBounds) : undefined;
  // The place of a duplicate member is known to the other parser alone.
  const parsed = json?.kind === 'value' ? json : parseYaml(text);
  if (parsed.kind === 'problem') return parsed;
  const { value } = parsed;
  if (Array.isArray(value)) return notOpenApi('a list');
  if (!isJsonObject(value)) return notOpenApi('a text without members');
  const { openapi, swagger } = { openapi: memberOf(value, 'openapi'), swagger: memberOf(value, 'swagger') };
  // Without quotes, YAML reads 3.0 as the number 3.
  if (/^3(?:\.[012](?:\..*)?)?$/.test(String(openapi))) return { kind: 'openapi', major: 3, root: value };
  if (/^2(?:\.0)?$/.test(String(swagger))) return { kind: 'openapi', major: 2, root: value };
  const version = openapi ?? swagger;
  if (version !== undefined)
    return problem(
      `is of version ${printable(String(version), 32)}: OpenAPI 3.0, 3.1, 3.2 and Swagger 2.0 can be read`,
    );
  return notOpenApi(foreignObjects.find(([is]) => is(value))?.[1] ?? 'a file without "openapi" and "swagger"');
}

function notOpenApi(what: string): Problem {
  return problem(`is ${what}, not an OpenAPI document`);
}

function parseYaml(text: string): { readonly kind: 'value'; readonly value: unknown } | Problem {
  try {
    return { kind: 'value', value: load(text, yaml) };
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { reason, mark } = error;
    const what = reason.startsWith('duplicated') ? 'a member is there twice' : printable(reason, 200);
    const where = mark === undefined ? '' : `line ${mark.line + 1}, column ${mark.column + 1}: `;
    return problem(`is neither JSON nor YAML that can be read: ${where}${what}`);
  }
}

const foreignTexts: readonly (readonly [RegExp, string])[] = [
  [/^\s*<(?:!doctype html|html)/i, 'an HTML page'],
  [/^\s*</, 'an XML document'],
  [/^\s*#%RAML/, 'RAML'],
  [/^\s*FORMAT: *1A/, 'API Blueprint'],
  [/^syntax *= *"proto/m, 'a protobuf file'],
  [/^\s*(?:type|schema|interface|input|enum)\b[^:]*\{/, 'a GraphQL schema'],
];

const has =
  (...names: readonly string[]) =>
  (value: unknown): boolean =>
    names.every(name => memberOf(value, name) !== undefined);

const foreignObjects: readonly (readonly [(value: unknown) => boolean, string])[] = [
  [has('asyncapi'), 'AsyncAPI'],
  [has('arazzo'), 'an Arazzo document'],
  [has('overlay'), 'an OpenAPI overlay'],
  [has('swaggerVersion'), 'Swagger 1.x'],
  [
    value =>
      /getpostman\.com|postman_id/.test(JSON.stringify(memberOf(value, 'info') ?? '')) || has('info', 'item')(value),
    'a Postman collection',
  ],
  [value => has('_type')(value) && has('resources')(value), 'an Insomnia export'],
  [value => has('entries')(memberOf(value, 'log')), 'a HAR file'],
  [value => has('__schema')(memberOf(value, 'data') ?? value), 'a GraphQL schema'],
  [has('$schema'), 'a JSON Schema'],
  [has('issuers'), 'a configuration of account-authz'],
  [has('apiVersion', 'kind'), 'a Kubernetes manifest'],
];
