/** A real gRPC server with the service grpc.health.v1.Health. */
import { Server, ServerCredentials, type sendUnaryData } from '@grpc/grpc-js'

interface HealthServer {
  readonly port: number
  /** The services that were asked for, in order. */
  readonly asked: readonly string[]
  /** Sets the status that is answered: 1 is SERVING, 2 NOT_SERVING. An error is a gRPC status. */
  answer(what: { readonly serving: number } | { readonly error: number }): void
  close(): void
}

const identity = (bytes: Buffer): Buffer => bytes

/** Starts a server that is SERVING, on a free loopback port. */
export async function startHealthServer(): Promise<HealthServer> {
  const asked: string[] = []
  let next: Parameters<HealthServer['answer']>[0] = { serving: 1 }
  const check = ({ request }: { request: Buffer }, respond: sendUnaryData<Buffer>): void => {
    // Field 1 is the name of the service.
    asked.push(request.subarray(2).toString())
    if ('error' in next) respond({ code: next.error, details: 'no' })
    else respond(null, Buffer.from([8, next.serving]))
  }
  const server = new Server()
  const method = {
    path: '/grpc.health.v1.Health/Check',
    requestStream: false,
    responseStream: false,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  }
  server.addService({ Check: method }, { Check: check })
  const port = await new Promise<number>((resolve, reject) => {
    const credentials = ServerCredentials.createInsecure()
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  return {
    port,
    asked,
    answer: (what) => {
      next = what
    },
    close: () => server.forceShutdown(),
  }
}
