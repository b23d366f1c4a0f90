// proto/services.json: of the messages in proto/, what the service reads and writes. @grpc/proto-loader describes each field, option
// and enum at each start, in code that it makes for that (docs/dev/performance.md).
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

/** As protocol.ts declares them. */
const fields: Readonly<Record<string, string>> = {
  'envoy.service.auth.v3.CheckRequest': 'attributes',
  'envoy.service.auth.v3.AttributeContext': 'source request context_extensions',
  'envoy.service.auth.v3.AttributeContext.Peer': 'certificate',
  'envoy.service.auth.v3.AttributeContext.Request': 'http',
  'envoy.service.auth.v3.AttributeContext.HttpRequest':
    'method headers path host scheme query fragment protocol header_map',
  'envoy.service.auth.v3.CheckResponse': 'status denied_response ok_response dynamic_metadata',
  'envoy.service.auth.v3.DeniedHttpResponse': 'status headers body',
  'envoy.service.auth.v3.OkHttpResponse': 'headers headers_to_remove',
  'envoy.config.core.v3.HeaderMap': 'headers',
  'envoy.config.core.v3.HeaderValue': 'key value raw_value',
  'envoy.config.core.v3.HeaderValueOption': 'header append append_action',
  'envoy.type.v3.HttpStatus': 'code',
  'google.rpc.Status': 'code',
  'google.protobuf.BoolValue': 'value',
  'google.protobuf.Struct': 'fields',
  'google.protobuf.Value': 'stringValue',
  'grpc.health.v1.HealthCheckRequest': 'service',
  'grpc.health.v1.HealthCheckResponse': 'status',
};

export function makeServices(): string {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, file) => fileURLToPath(new URL(`../../proto/${file}`, import.meta.url));
  root.loadSync(['envoy/service/auth/v3/external_auth.proto', 'grpc/health/v1/health.proto'], { keepCase: true });
  root.resolveAll();
  reduce(root);
  const text = JSON.stringify(root.toJSON(), (key, value) => (key === 'options' ? undefined : value), 2);
  return `${text}\n`;
}

function reduce(namespace: protobuf.NamespaceBase): void {
  for (const object of namespace.nestedArray) {
    if (object instanceof protobuf.Namespace) reduce(object);
    const isType = object instanceof protobuf.Type;
    if (isType) reduceType(object);
    // An enum is a number on the wire, and numbers are what we read and write.
    if (object instanceof protobuf.Enum || (isType && object.fieldsArray.length + object.nestedArray.length === 0))
      namespace.remove(object);
  }
}

function reduceType(type: protobuf.Type): void {
  for (const field of type.fieldsArray) {
    if (fields[type.fullName.slice(1)]?.split(' ').includes(field.name) !== true) type.remove(field);
    else if (field.resolvedType instanceof protobuf.Enum) field.type = 'int32';
  }
}
