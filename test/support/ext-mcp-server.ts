/** A real gRPC server of ExtMcp, whose answers the test chooses. */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf'
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'
import {
  McpRequestResultSchema,
  McpRequestSchema,
  McpResponseResultSchema,
  McpResponseSchema,
} from '../../proto/gen/called/ext_mcp_pb.ts'

export interface CheckedMessage {
  readonly services: readonly string[]
  readonly method: string
  readonly metadata: unknown
  /** Params or result. */
  readonly body: Record<string, unknown>
  /** Of requests; values of repeated headers are joined by `|`. */
  readonly headers: Readonly<Record<string, string>>
}

type RequestAnswer = MessageInitShape<typeof McpRequestResultSchema>
type ResponseAnswer = MessageInitShape<typeof McpResponseResultSchema>

const pass = { result: { case: 'pass', value: {} } } as const
export const mutated = (value: unknown) =>
  ({ result: { case: 'mutated', value: Buffer.from(JSON.stringify(value)) } }) as const
export const mutatedText = (value: string) =>
  ({ result: { case: 'mutated', value: Buffer.from(value) } }) as const
export const denied = (code: number, reason: string, error?: unknown) =>
  ({
    result: {
      case: 'error',
      value: {
        code,
        reason,
        ...(error !== undefined && { mcpError: Buffer.from(JSON.stringify(error)) }),
      },
    },
  }) as const

export class ExtMcpServer {
  readonly requests: CheckedMessage[] = []
  readonly responses: CheckedMessage[] = []
  /** Undefined lets the message pass; a number is a gRPC status. */
  onRequest: (message: CheckedMessage) => RequestAnswer | number | undefined = () => undefined
  onResponse: (message: CheckedMessage) => ResponseAnswer | number | undefined = () => undefined
  readonly #server = new Server()
  port = 0

  async start(): Promise<this> {
    const methods = {
      CheckRequest: unary((bytes: Buffer) => {
        const { serviceNames, method, metadataContext, mcpRequest, headers } = fromBinary(
          McpRequestSchema,
          bytes,
        )
        const all: Record<string, string> = {}
        for (const { key, value } of headers) {
          const text = Buffer.from(value).toString()
          all[key] = all[key] === undefined ? text : `${all[key]}|${text}`
        }
        const message = {
          services: serviceNames,
          method,
          metadata: metadataContext,
          body: bodyOf(mcpRequest),
          headers: all,
        }
        this.requests.push(message)
        return answer(McpRequestResultSchema, this.onRequest(message))
      }),
      CheckResponse: unary((bytes: Buffer) => {
        const { serviceNames, method, metadataContext, mcpResponse } = fromBinary(
          McpResponseSchema,
          bytes,
        )
        const message = {
          services: serviceNames,
          method,
          metadata: metadataContext,
          body: bodyOf(mcpResponse),
          headers: {},
        }
        this.responses.push(message)
        return answer(McpResponseResultSchema, this.onResponse(message))
      }),
    }
    const definition = Object.fromEntries(
      Object.keys(methods).map((name) => [
        name,
        {
          path: `/agentgateway.dev.ext_mcp.ExtMcp/${name}`,
          requestStream: false,
          responseStream: false,
          requestSerialize: identity,
          requestDeserialize: identity,
          responseSerialize: identity,
          responseDeserialize: identity,
        },
      ]),
    )
    this.#server.addService(definition, methods)
    this.port = await new Promise<number>((resolve, reject) => {
      const access = ServerCredentials.createInsecure()
      this.#server.bindAsync('127.0.0.1:0', access, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      )
    })
    return this
  }

  close(): void {
    this.#server.forceShutdown()
  }
}

const identity = (bytes: Buffer): Buffer => bytes

const bodyOf = (bytes: Uint8Array | undefined): Record<string, unknown> =>
  JSON.parse(Buffer.from(bytes ?? Buffer.from('{}')).toString())

function answer<Schema extends DescMessage>(
  schema: Schema,
  given: MessageInitShape<Schema> | number | undefined,
): Buffer | number {
  if (typeof given === 'number') return given
  const init = given ?? (pass as unknown as MessageInitShape<Schema>)
  return Buffer.from(toBinary(schema, create(schema, init)))
}

function unary(serve: (bytes: Buffer) => Buffer | number) {
  return ({ request }: ServerUnaryCall<Buffer, Buffer>, respond: sendUnaryData<Buffer>): void => {
    const given = serve(request)
    if (typeof given === 'number') respond({ code: given, details: 'as told' })
    else respond(null, given)
  }
}
