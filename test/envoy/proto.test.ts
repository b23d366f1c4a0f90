// proto/ compared with the protos that Envoy publishes.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import protobuf from 'protobufjs';
import { authorizationServiceName } from '../../src/envoy/protocol.ts';
import { entryFile, loadProtos, ourDirectory, ours, valuesOf } from './proto-facts.ts';

const xdsPackage = dirname(createRequire(import.meta.url).resolve('@grpc/grpc-js-xds/package.json'));

const publishedDirectories = ['envoy-api', 'googleapis', 'xds', 'protoc-gen-validate'].map(name =>
  join(xdsPackage, 'deps', name),
);

const published = loadProtos(publishedDirectories, [entryFile]);

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

// No dependency ships grpc/health/v1/health.proto: these values are from the repository grpc/grpc-proto.
const healthMessages: Readonly<Record<string, Readonly<Record<string, FieldFacts>>>> = {
  'grpc.health.v1.HealthCheckRequest': {
    service: { number: 1, type: 'string', cardinality: 'single', oneof: undefined },
  },
  'grpc.health.v1.HealthCheckResponse': {
    status: {
      number: 1,
      type: 'grpc.health.v1.HealthCheckResponse.ServingStatus',
      cardinality: 'single',
      oneof: undefined,
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

  it('has exactly the messages of a check', () => {
    expect(messagesOf(ours, 'envoy', 'google.rpc').map(fullName)).to.have.members([
      'envoy.service.auth.v3.CheckRequest',
      'envoy.service.auth.v3.CheckResponse',
      'envoy.service.auth.v3.DeniedHttpResponse',
      'envoy.service.auth.v3.OkHttpResponse',
      'envoy.service.auth.v3.AttributeContext',
      'envoy.service.auth.v3.AttributeContext.Peer',
      'envoy.service.auth.v3.AttributeContext.Request',
      'envoy.service.auth.v3.AttributeContext.HttpRequest',
      'envoy.service.auth.v3.AttributeContext.TLSSession',
      'envoy.config.core.v3.Metadata',
      'envoy.config.core.v3.QueryParameter',
      'envoy.config.core.v3.HeaderValue',
      'envoy.config.core.v3.HeaderValueOption',
      'envoy.config.core.v3.HeaderMap',
      'envoy.config.core.v3.Address',
      'envoy.config.core.v3.SocketAddress',
      'envoy.config.core.v3.Pipe',
      'envoy.config.core.v3.EnvoyInternalAddress',
      'envoy.type.v3.HttpStatus',
      'google.rpc.Status',
    ]);
  });

  it('needs its own values only for error_response, which the published protos lack', () => {
    expect(Object.keys(newerThanPublished)).to.deep.equal(['envoy.service.auth.v3.CheckResponse']);
    expect(fieldsOf(published.lookupType('envoy.service.auth.v3.CheckResponse'))).to.not.have.property(
      'error_response',
    );
  });

  it('has the published service', () => {
    expect(methodsOf(ours.lookupService(authorizationServiceName))).to.deep.equal(
      methodsOf(published.lookupService(authorizationServiceName)),
    );
  });

  it('has the gRPC health checking protocol', () => {
    const messages = messagesOf(ours, 'grpc');
    expect(Object.fromEntries(messages.map(each => [fullName(each), fieldsOf(each)]))).to.deep.equal(healthMessages);
    expect(valuesOf(ours.lookupEnum('grpc.health.v1.HealthCheckResponse.ServingStatus'))).to.deep.equal({
      UNKNOWN: 0,
      SERVING: 1,
      NOT_SERVING: 2,
      SERVICE_UNKNOWN: 3,
    });
    expect(methodsOf(ours.lookupService('grpc.health.v1.Health'))).to.deep.equal({
      Check: 'HealthCheckRequest → HealthCheckResponse',
      Watch: 'HealthCheckRequest → stream HealthCheckResponse',
    });
  });

  it('imports no validation or annotation protos', () => {
    const imports = protoFiles(ourDirectory).flatMap(file =>
      [...readFileSync(file, 'utf8').matchAll(/^import "([^"]+)"/gm)].map(match => match[1] ?? ''),
    );
    expect(imports).to.not.be.empty;
    expect(imports.filter(name => !/^(envoy\/(config|service|type)|google\/(protobuf|rpc))\//.test(name))).to.be.empty;
  });
});

function protoFiles(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.proto'))
    .map(name => join(directory, name));
}

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
