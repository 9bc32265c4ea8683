/** A processor over gRPC: the test chooses its answer to each message of a stream. */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
} from '@grpc/grpc-js'
import {
  type HttpHeaders,
  type ProcessingRequest,
  ProcessingRequestSchema,
  ProcessingResponseSchema,
} from '../../proto/gen/called/ext_proc_pb.ts'
import type { Certificate } from './certificates.ts'

type Response = MessageInitShape<typeof ProcessingResponseSchema>

/** One stream, from the processor's side. */
export interface ProcessorStream {
  /** Everything that was received on it, in order. */
  readonly messages: readonly ProcessingRequest[]
  /** gRPC metadata that the call came with. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** Given up by the gateway, or over. */
  readonly isGone: boolean
  send(response: Response): void
  /** Ends the call, well or with a status. */
  end(status?: number): void
}

export type Processor = (message: ProcessingRequest, stream: ProcessorStream) => void

export interface ExtProcServer {
  readonly port: number
  readonly streams: readonly ProcessorStream[]
  /** Drops what was received so far. */
  forget(): void
  close(): void
}

/** Fields of a message by name; pseudo-headers too. */
export function fieldsOf({ headers }: HttpHeaders): Record<string, string> {
  const entries = headers?.headers ?? []
  return Object.fromEntries(
    entries.map(({ key, rawValue }) => [key, Buffer.from(rawValue).toString('latin1')]),
  )
}

/** Lets everything pass as it is. */
export const passAll: Processor = ({ request }, stream) => {
  const { case: part, value } = request
  if (part === 'requestHeaders') stream.send({ response: { case: part, value: {} } })
  else if (part === 'responseHeaders') stream.send({ response: { case: part, value: {} } })
  else if (part === 'requestBody' || part === 'responseBody') {
    const { body, endOfStream } = value
    stream.send(streamed(part, body, endOfStream))
  } else if (part === 'requestTrailers' || part === 'responseTrailers') {
    stream.send({ response: { case: part, value: {} } })
  }
}

export function streamed(
  part: 'requestBody' | 'responseBody',
  body: Uint8Array,
  endOfStream: boolean,
): Response {
  const streamedResponse = { case: 'streamedResponse', value: { body, endOfStream } } as const
  const value = { response: { bodyMutation: { mutation: streamedResponse } } }
  return { response: { case: part, value } }
}

/** A header mutation, values as text. */
export function setting(fields: Readonly<Record<string, string>>, removed: string[] = []) {
  const setHeaders = Object.entries(fields).map(([key, value]) => ({
    header: { key, rawValue: Buffer.from(value) },
  }))
  return { headerMutation: { setHeaders, removeHeaders: removed } }
}

const process: MethodDefinition<Buffer, Buffer> = {
  path: '/envoy.service.ext_proc.v3.ExternalProcessor/Process',
  requestStream: true,
  responseStream: true,
  requestSerialize: (bytes) => bytes,
  requestDeserialize: (bytes) => bytes,
  responseSerialize: (bytes) => bytes,
  responseDeserialize: (bytes) => bytes,
}

export async function startExtProcServer(
  processor: Processor,
  tls?: Certificate,
): Promise<ExtProcServer> {
  const streams: ProcessorStream[] = []
  const server = new Server()
  server.addService(
    { process },
    {
      process: (call: ServerDuplexStream<Buffer, Buffer>) => {
        const messages: ProcessingRequest[] = []
        let isGone = false
        const stream: ProcessorStream = {
          messages,
          metadata: call.metadata.getMap(),
          get isGone() {
            return isGone
          },
          send: (response) => {
            const message = create(ProcessingResponseSchema, response)
            call.write(Buffer.from(toBinary(ProcessingResponseSchema, message)))
          },
          end: (status) => {
            if (status === undefined) call.end()
            else call.emit('error', { code: status, details: 'as told' })
          },
        }
        streams.push(stream)
        const gone = () => {
          isGone = true
        }
        call.on('cancelled', gone)
        call.on('end', () => {
          gone()
          call.end()
        })
        call.on('data', (bytes: Buffer) => {
          const message = fromBinary(ProcessingRequestSchema, bytes)
          messages.push(message)
          processor(message, stream)
        })
      },
    },
  )
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [
          { cert_chain: Buffer.from(tls.certificate), private_key: Buffer.from(tls.key) },
        ])
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  const forget = () => {
    streams.length = 0
  }
  return { port, streams, forget, close: () => server.forceShutdown() }
}
