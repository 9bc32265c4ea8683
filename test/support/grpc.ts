/** Real gRPC servers and clients for tests, of messages that are plain text. */
import {
  type Client,
  credentials,
  type handleBidiStreamingCall,
  Metadata,
  makeGenericClientConstructor,
  Server,
  ServerCredentials,
  type ServerOptions,
  type ServiceDefinition,
  type ServiceError,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'

const serialize = (text: string) => Buffer.from(text)
const deserialize = (bytes: Buffer) => bytes.toString()

const kinds = {
  Unary: [false, false],
  Upload: [true, false],
  Download: [false, true],
  Chat: [true, true],
} as const

/** A service with a method of each kind. */
export function textService(name: string): ServiceDefinition {
  return Object.fromEntries(
    Object.entries(kinds).map(([method, [requestStream, responseStream]]) => [
      method,
      {
        path: `/${name}/${method}`,
        requestStream,
        responseStream,
        requestSerialize: serialize,
        requestDeserialize: deserialize,
        responseSerialize: serialize,
        responseDeserialize: deserialize,
      },
    ]),
  )
}

export interface GrpcUpstream {
  readonly port: number
  /** Metadata of each call, in order. */
  readonly calls: readonly Readonly<Record<string, unknown>>[]
  close(): void
}

type Chat = Parameters<handleBidiStreamingCall<string, string>>[0]

/** Echoes with its name in front; `fail` answers with an error, and trailers say who answered. */
export async function startGrpcUpstream(
  label: string,
  services: readonly string[],
  secure?: { certificate: string; key: string },
): Promise<GrpcUpstream> {
  const calls: Record<string, unknown>[] = []
  const options: ServerOptions = {}
  const server = new Server(options)
  const trailers = () => {
    const metadata = new Metadata()
    metadata.set('x-answered-by', label)
    return metadata
  }
  const failure = { code: 9, details: 'not now: é', metadata: trailers() }
  // biome-ignore lint/suspicious/noExplicitAny: the generic handlers of grpc-js are untyped
  const implementation: Record<string, (...call: any[]) => void> = {
    Unary: (call, callback) => {
      calls.push(call.metadata.getMap())
      if (call.request === 'fail') callback(failure)
      else callback(null, `${label}:${call.request}`, trailers())
    },
    Upload: (call, callback) => {
      calls.push(call.metadata.getMap())
      const parts: string[] = []
      call.on('data', (part: string) => parts.push(part))
      call.on('end', () => callback(null, `${label}:${parts.join('+')}`, trailers()))
    },
    Download: (call) => {
      calls.push(call.metadata.getMap())
      for (let at = 0; at < Number(call.request); at++) call.write(`${label}:${at}`)
      call.end(trailers())
    },
    Chat: (call: Chat) => {
      calls.push(call.metadata.getMap())
      call.on('data', (part: string) => {
        if (part === 'fail') call.emit('error', failure)
        else call.write(`${label}:${part}`)
      })
      call.on('end', () => call.end(trailers()))
    },
  }
  for (const name of services) {
    server.addService(textService(name), implementation as UntypedServiceImplementation)
  }
  const access =
    secure === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [
          { cert_chain: Buffer.from(secure.certificate), private_key: Buffer.from(secure.key) },
        ])
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', access, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  return { port, calls, close: () => server.forceShutdown() }
}

/** What a call came to. */
export interface GrpcOutcome {
  readonly messages: readonly string[]
  readonly code: number
  readonly details: string
  readonly trailers: Readonly<Record<string, unknown>>
}

/** Calls methods of one service through a gateway. */
export class GrpcCaller {
  readonly #client: Client
  // biome-ignore lint/suspicious/noExplicitAny: methods of a generic client are untyped
  readonly #methods: any

  constructor(port: number, service: string, authority: string, rootCertificate?: string) {
    const access =
      rootCertificate === undefined
        ? credentials.createInsecure()
        : credentials.createSsl(Buffer.from(rootCertificate))
    const Constructor = makeGenericClientConstructor(textService(service), service)
    this.#client = new Constructor(`127.0.0.1:${port}`, access, {
      'grpc.default_authority': authority,
      'grpc.ssl_target_name_override': authority,
      'grpc.enable_retries': 0,
      'grpc.use_local_subchannel_pool': 1,
    })
    this.#methods = this.#client
  }

  unary(message: string, headers: Readonly<Record<string, string>> = {}): Promise<GrpcOutcome> {
    return new Promise((resolve) => {
      let trailers = {}
      const call = this.#methods.Unary(
        message,
        metadataOf(headers),
        (error: ServiceError | null, answer: string) =>
          setImmediate(() =>
            resolve({
              messages: error === null ? [answer] : [],
              code: error?.code ?? 0,
              details: error?.details ?? '',
              trailers: error === null ? trailers : error.metadata.getMap(),
            }),
          ),
      )
      call.on('status', ({ metadata }: { metadata: Metadata }) => {
        trailers = metadata.getMap()
      })
    })
  }

  upload(messages: readonly string[]): Promise<GrpcOutcome> {
    return new Promise((resolve) => {
      const call = this.#methods.Upload((error: ServiceError | null, answer: string) =>
        resolve({
          messages: error === null ? [answer] : [],
          code: error?.code ?? 0,
          details: error?.details ?? '',
          trailers: {},
        }),
      )
      for (const message of messages) call.write(message)
      call.end()
    })
  }

  download(count: number): Promise<GrpcOutcome> {
    return outcomeOf(this.#methods.Download(String(count)))
  }

  /** Each message is sent when the answer to the one before has come. */
  chat(messages: readonly string[]): Promise<GrpcOutcome> {
    const call = this.#methods.Chat()
    const left = [...messages]
    const next = () => {
      const message = left.shift()
      if (message === undefined) call.end()
      else call.write(message)
    }
    call.on('data', next)
    next()
    return outcomeOf(call)
  }

  /** A call that stays open until it is cancelled. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  open(): any {
    return this.#methods.Chat()
  }

  close(): void {
    this.#client.close()
  }
}

function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  return metadata
}

// biome-ignore lint/suspicious/noExplicitAny: calls of a generic client are untyped
function outcomeOf(call: any): Promise<GrpcOutcome> {
  const messages: string[] = []
  return new Promise((resolve) => {
    call.on('data', (message: string) => messages.push(message))
    call.on('error', () => {})
    call.on('status', (status: { code: number; details: string; metadata: Metadata }) =>
      resolve({
        messages,
        code: status.code,
        details: status.details,
        trailers: status.metadata.getMap(),
      }),
    )
  })
}
