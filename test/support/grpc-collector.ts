import { Server, ServerCredentials, type ServiceDefinition, status } from '@grpc/grpc-js'

/** Starts a collector that takes calls of one method of OTLP. The first call fails in a way that says: later. */
export async function startGrpcCollector(path: string, take: (request: Buffer) => void) {
  const server = new Server()
  const definition: ServiceDefinition = {
    export: {
      path,
      requestStream: false,
      responseStream: false,
      requestSerialize: (value: Buffer) => value,
      requestDeserialize: (bytes: Buffer) => bytes,
      responseSerialize: (value: Buffer) => value,
      responseDeserialize: (bytes: Buffer) => bytes,
    },
  }
  let failures = 1
  server.addService(definition, {
    export: (
      call: { request: Buffer },
      done: (error: { code: number } | null, answer?: Buffer) => void,
    ) => {
      if (failures-- > 0) {
        done({ code: status.UNAVAILABLE })
        return
      }
      take(call.request)
      done(null, Buffer.alloc(0))
    },
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  return { port, close: () => server.forceShutdown() }
}
