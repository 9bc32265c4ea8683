/** Readiness probes of containers, as a kubelet makes them: HTTP GET, or gRPC's health service. */
import { Client, credentials, type ServiceError } from '@grpc/grpc-js'
import type { Container } from '../support/pod-spec.ts'

type Probe = NonNullable<Container['readinessProbe']>

/** @throws if the container is not ready */
export async function checkReadiness(address: string, { httpGet, grpc }: Probe): Promise<true> {
  if (httpGet !== undefined) {
    const answer = await fetch(`http://${address}:${httpGet.port}${httpGet.path}`)
    if (!answer.ok) throw new Error(`not ready: ${answer.status}`)
  }
  if (grpc !== undefined) await checkHealth(`${address}:${grpc.port}`, grpc.service ?? '')
  return true
}

/** The first field of HealthCheckRequest is the name of the service; 1 in that of the answer is SERVING. */
async function checkHealth(target: string, service: string): Promise<void> {
  const client = new Client(target, credentials.createInsecure())
  const name = Buffer.from(service)
  const request = Buffer.concat([Buffer.of(0x0a, name.length), name])
  const path = '/grpc.health.v1.Health/Check'
  try {
    const answer = await new Promise<Buffer>((resolve, reject) => {
      const done = (error: ServiceError | null, value?: Buffer) =>
        value === undefined ? reject(error) : resolve(value)
      const deadline = { deadline: Date.now() + 1000 }
      const same = (bytes: Buffer) => bytes
      client.makeUnaryRequest(path, same, same, request, deadline, done)
    })
    if (!answer.equals(Buffer.of(0x08, 0x01))) throw new Error('not serving')
  } finally {
    client.close()
  }
}
