/** A gRPC service with one unary method: records requests and answers as the test says. */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'

export interface UnaryService<Asked, Answer> {
  readonly port: number
  readonly asked: readonly Asked[]
  /** What is answered from now on: a message, its bytes, a gRPC status, or nothing at all. */
  answer(what: Answer | Uint8Array | number | 'nothing'): void
  close(): void
}

export interface UnaryMethod<Request extends DescMessage, Response extends DescMessage, Asked> {
  /** Such as `/package.Service/Method`. */
  readonly path: string
  readonly request: Request
  readonly response: Response
  /** What is kept of a request. */
  readonly keep: (request: MessageShape<Request>) => Asked
  /** The answer until the test sets another one. */
  readonly first: MessageInitShape<Response>
}

const identity = (bytes: Buffer): Buffer => bytes

export async function startUnaryService<
  Request extends DescMessage,
  Response extends DescMessage,
  Asked,
>({
  path,
  request: requestSchema,
  response: responseSchema,
  keep,
  first,
}: UnaryMethod<Request, Response, Asked>): Promise<
  UnaryService<Asked, MessageInitShape<Response>>
> {
  const asked: Asked[] = []
  let answer: MessageInitShape<Response> | Uint8Array | number | 'nothing' = first
  const method = (
    { request }: ServerUnaryCall<Buffer, Buffer>,
    respond: sendUnaryData<Buffer>,
  ): void => {
    asked.push(keep(fromBinary(requestSchema, request)))
    if (answer === 'nothing') return
    if (typeof answer === 'number') respond({ code: answer, details: 'as told' })
    else if (answer instanceof Uint8Array) respond(null, Buffer.from(answer))
    else {
      const message = create(responseSchema, answer)
      respond(null, Buffer.from(toBinary(responseSchema, message)))
    }
  }
  const server = new Server()
  server.addService(
    {
      method: {
        path,
        requestStream: false,
        responseStream: false,
        requestSerialize: identity,
        requestDeserialize: identity,
        responseSerialize: identity,
        responseDeserialize: identity,
      },
    },
    { method },
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
