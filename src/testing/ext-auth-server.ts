/** An authorization service over gRPC: keeps what it was asked, and answers as it is told. */

import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'
import {
  type AttributeContext,
  CheckRequestSchema,
  CheckResponseSchema,
} from '../../proto/gen/called/ext_authz_pb.ts'

type Answer = MessageInitShape<typeof CheckResponseSchema>

export interface ExtAuthServer {
  readonly port: number
  readonly asked: readonly (AttributeContext | undefined)[]
  /** What is answered from now on: a message, a gRPC status, or nothing at all. */
  answer(what: Answer | number | 'nothing'): void
  close(): void
}

const identity = (bytes: Buffer): Buffer => bytes

export async function startExtAuthServer(): Promise<ExtAuthServer> {
  const asked: (AttributeContext | undefined)[] = []
  let answer: Answer | number | 'nothing' = {}
  const check = (
    { request }: ServerUnaryCall<Buffer, Buffer>,
    respond: sendUnaryData<Buffer>,
  ): void => {
    asked.push(fromBinary(CheckRequestSchema, request).attributes)
    if (answer === 'nothing') return
    if (typeof answer === 'number') respond({ code: answer, details: 'as told' })
    else {
      const message = create(CheckResponseSchema, answer)
      respond(null, Buffer.from(toBinary(CheckResponseSchema, message)))
    }
  }
  const server = new Server()
  server.addService(
    {
      check: {
        path: '/envoy.service.auth.v3.Authorization/Check',
        requestStream: false,
        responseStream: false,
        requestSerialize: identity,
        requestDeserialize: identity,
        responseSerialize: identity,
        responseDeserialize: identity,
      },
    },
    { check },
  )
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  return {
    port,
    asked,
    answer: (what) => {
      answer = what
    },
    close: () => server.forceShutdown(),
  }
}
