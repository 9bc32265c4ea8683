/**
 * A processor without a gRPC library: the test sees how the gateway ends each stream, and can cut the
 * connection.
 */
import { once } from 'node:events'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import {
  type ProcessingRequest,
  ProcessingRequestSchema,
  ProcessingResponseSchema,
} from '../../proto/gen/called/ext_proc_pb.ts'

type Response = MessageInitShape<typeof ProcessingResponseSchema>

/** How a stream ended, as the processor saw it. */
export interface BareEnding {
  /** The gateway sent END_STREAM. */
  readonly isHalfClosed: boolean
  /** Code of the RST_STREAM frame of the gateway; 0 if there was none or it had NO_ERROR. */
  readonly resetCode: number
}

export interface BareStream {
  send(response: Response): void
  /** Ends the processor's side with a gRPC status. */
  end(status?: number): void
}

export type BareProcessor = (message: ProcessingRequest, stream: BareStream) => void

export interface BareServer {
  readonly port: number
  /** Number of streams that the gateway has opened. */
  readonly opened: number
  readonly endings: readonly BareEnding[]
  /** Ends all connections with FIN, or resets them. */
  cut(by: 'FIN' | 'RST'): void
  close(): void
}

/** `endsAfterGateway`: whether the server ends its side of a stream when the gateway has ended its own. */
export async function startBareProcessor(
  processor: BareProcessor,
  endsAfterGateway: () => boolean = () => true,
): Promise<BareServer> {
  const endings: BareEnding[] = []
  const sockets = new Set<Socket>()
  let opened = 0
  const server = createServer()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.on('stream', (stream: ServerHttp2Stream) => {
    opened++
    serve(stream, processor, endsAfterGateway, (ending) => endings.push(ending))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get opened() {
      return opened
    },
    endings,
    cut(by) {
      for (const socket of sockets) {
        if (by === 'FIN') socket.end()
        else socket.resetAndDestroy()
      }
      sockets.clear()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function serve(
  stream: ServerHttp2Stream,
  processor: BareProcessor,
  endsAfterGateway: () => boolean,
  onClose: (ending: BareEnding) => void,
): void {
  let isHalfClosed = false
  let status = 0
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': `${status}` }))
  stream.on('error', () => undefined)
  const bare: BareStream = {
    send(response) {
      const bytes = toBinary(ProcessingResponseSchema, create(ProcessingResponseSchema, response))
      const prefix = Buffer.alloc(5)
      prefix.writeUInt32BE(bytes.length, 1)
      stream.write(Buffer.concat([prefix, bytes]))
    },
    end(code = 0) {
      status = code
      stream.end()
    },
  }
  let read = Buffer.alloc(0)
  stream.on('data', (bytes: Buffer) => {
    read = Buffer.concat([read, bytes])
    while (read.length >= 5 && read.length >= 5 + read.readUInt32BE(1)) {
      const end = 5 + read.readUInt32BE(1)
      const message = fromBinary(ProcessingRequestSchema, read.subarray(5, end))
      read = read.subarray(end)
      processor(message, bare)
    }
  })
  stream.on('end', () => {
    isHalfClosed = true
    if (endsAfterGateway()) stream.end()
  })
  stream.on('close', () => onClose({ isHalfClosed, resetCode: stream.rstCode ?? 0 }))
}
