// proto/ compared with the protos that Envoy publishes.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import protobuf from 'protobufjs';
import { authorizationServiceName } from '../../src/envoy/protocol.ts';
import { entryFile, loadProtos, ours, valuesOf } from './proto-facts.ts';

const folderOf = (name: string): string => dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
const deps = ['envoy-api', 'googleapis', 'xds', 'protoc-gen-validate'];
const published = loadProtos(
  [...deps.map(name => join(folderOf('@grpc/grpc-js-xds'), 'deps', name)), folderOf('protobufjs')],
  [entryFile],
);

// The published protos of the installed package are from before Envoy 1.37. Newer fields are compared with these values,
// taken from Envoy's own API and confirmed with real Envoys.
const newerThanPublished: Readonly<Record<string, Readonly<Record<string, FieldFacts>>>> = {
  'envoy.service.auth.v3.CheckResponse': {
    error_response: {
      number: 5,
      type: 'envoy.service.auth.v3.DeniedHttpResponse',
      cardinality: 'single',
      oneof: 'http_response',
    },
  },
};

interface FieldFacts {
  readonly number: number;
  /** A scalar, or the full name of a message or an enum. */
  readonly type: string;
  readonly cardinality: string;
  readonly oneof: string | undefined;
}

describe('proto/', () => {
  describe('messages', () => {
    for (const message of messagesOf(ours, 'envoy', 'google.rpc')) {
      const name = fullName(message);
      it(`have the published fields of ${name}`, () => {
        expect(fieldsOf(message)).to.deep.equal({
          ...fieldsOf(published.lookupType(name)),
          ...newerThanPublished[name],
        });
      });
    }
  });

  describe('enums', () => {
    for (const enumeration of enumsOf(ours, 'envoy')) {
      const name = fullName(enumeration);
      it(`have the published values of ${name}`, () => {
        expect(valuesOf(enumeration)).to.deep.equal(valuesOf(published.lookupEnum(name)));
      });
    }
  });

  it('has the published service', () => {
    expect(methodsOf(ours.lookupService(authorizationServiceName))).to.deep.equal(
      methodsOf(published.lookupService(authorizationServiceName)),
    );
  });
});

function fullName(object: protobuf.ReflectionObject): string {
  return object.fullName.slice(1);
}

function descendants(namespace: protobuf.NamespaceBase): protobuf.ReflectionObject[] {
  return namespace.nestedArray.flatMap(each =>
    each instanceof protobuf.Namespace ? [each, ...descendants(each)] : [each],
  );
}

function messagesOf(root: protobuf.Root, ...namespaces: readonly string[]): protobuf.Type[] {
  return namespaces.flatMap(each =>
    descendants(root.lookup(each) as protobuf.Namespace).filter(object => object instanceof protobuf.Type),
  );
}

function enumsOf(root: protobuf.Root, namespace: string): protobuf.Enum[] {
  return descendants(root.lookup(namespace) as protobuf.Namespace).filter(object => object instanceof protobuf.Enum);
}

function fieldsOf(message: protobuf.Type): Record<string, FieldFacts> {
  return Object.fromEntries(message.fieldsArray.map(field => [field.name, factsOf(field.resolve())]));
}

function factsOf(field: protobuf.Field): FieldFacts {
  return {
    number: field.id,
    type: field.resolvedType === null ? field.type : fullName(field.resolvedType),
    cardinality: cardinalityOf(field),
    oneof: field.partOf?.name,
  };
}

function cardinalityOf(field: protobuf.Field): string {
  if (field instanceof protobuf.MapField) return `map of ${field.keyType}`;
  return field.repeated ? 'repeated' : 'single';
}

function methodsOf(service: protobuf.Service): Record<string, string> {
  const stream = (flag: boolean | undefined) => (flag === true ? 'stream ' : '');
  return Object.fromEntries(
    service.methodsArray.map(method => [
      method.name,
      `${stream(method.requestStream)}${method.requestType} → ${stream(method.responseStream)}${method.responseType}`,
    ]),
  );
}
