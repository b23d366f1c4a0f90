// A do-nothing service with @grpc/grpc-js and @grpc/proto-loader: decodes the request and answers one fixed message.
import { type handleUnaryCall, Server } from '@grpc/grpc-js';
import { answerMessage, authorizationService, peerOptions, serve } from './proto.ts';

const options = peerOptions();
const service = authorizationService(options);
const answer = answerMessage(options);
const check: handleUnaryCall<unknown, unknown> = (_, callback) => callback(null, answer);

const server = new Server();
server.addService(service, { Check: check });
serve(server, options);
