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

type Answered<Answer> = Answer | Uint8Array | number | 'nothing'

export interface UnaryService<Asked, Answer> {
  readonly port: number
  readonly asked: readonly Asked[]
  /** What is answered from now on: a message, its bytes, a gRPC status, or nothing at all. */
  answer(what: Answered<Answer>): void
  /** Chooses the answer to each request from now on. */
  answerEach(choose: (asked: Asked) => Answered<Answer>): void
  /** Drops what was received so far. */
  forget(): void
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
  let choose: (asked: Asked) => Answered<MessageInitShape<Response>> = () => first
  const method = (
    { request }: ServerUnaryCall<Buffer, Buffer>,
    respond: sendUnaryData<Buffer>,
  ): void => {
    const kept = keep(fromBinary(requestSchema, request))
    asked.push(kept)
    const answer = choose(kept)
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
      choose = () => what
    },
    answerEach: (each) => {
      choose = each
    },
    forget: () => {
      asked.length = 0
    },
    close: () => server.forceShutdown(),
  }
}
