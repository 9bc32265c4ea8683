/** A rate limit service over gRPC: keeps what it was asked, and answers as it is told. */

import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '../../proto/gen/called/rate_limit_pb.ts'

type Answer = MessageInitShape<typeof RateLimitResponseSchema>

export interface RateLimitServer {
  readonly port: number
  readonly asked: readonly RateLimitRequest[]
  /** What is answered from now on: a message, a gRPC status, or nothing at all. */
  answer(what: Answer | number | 'nothing'): void
  close(): void
}

const identity = (bytes: Buffer): Buffer => bytes

export async function startRateLimitServer(): Promise<RateLimitServer> {
  const asked: RateLimitRequest[] = []
  let answer: Answer | number | 'nothing' = { overallCode: 1 }
  const shouldRateLimit = (
    { request }: ServerUnaryCall<Buffer, Buffer>,
    respond: sendUnaryData<Buffer>,
  ): void => {
    asked.push(fromBinary(RateLimitRequestSchema, request))
    if (answer === 'nothing') return
    if (typeof answer === 'number') respond({ code: answer, details: 'as told' })
    else {
      const message = create(RateLimitResponseSchema, answer)
      respond(null, Buffer.from(toBinary(RateLimitResponseSchema, message)))
    }
  }
  const server = new Server()
  server.addService(
    {
      shouldRateLimit: {
        path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
        requestStream: false,
        responseStream: false,
        requestSerialize: identity,
        requestDeserialize: identity,
        responseSerialize: identity,
        responseDeserialize: identity,
      },
    },
    { shouldRateLimit },
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
