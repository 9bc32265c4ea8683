/** A Service in front of processes that represent pods. */
import { type AddressInfo, connect, createServer, type Server } from 'node:net'

/** Where a pod takes connections, and whether it wants them. */
export interface BalancedPod {
  readonly target: { readonly host: string; readonly port: number }
  isReady(): Promise<boolean>
}

/** A Service as kube-proxy makes it: new connections go to pods that are ready. */
export class ServiceBalancer {
  readonly #server: Server
  readonly #pods = new Set<BalancedPod>()
  readonly #ready = new Set<BalancedPod>()
  #turn = 0
  #timer: NodeJS.Timeout

  constructor() {
    this.#server = createServer((socket) => {
      const ready = [...this.#ready]
      const pod = ready[this.#turn++ % ready.length]
      if (pod === undefined) {
        socket.destroy()
        return
      }
      const upstream = connect(pod.target.port, pod.target.host)
      socket.pipe(upstream).pipe(socket)
      socket.once('error', () => upstream.destroy())
      upstream.once('error', () => socket.destroy())
    })
    this.#timer = setInterval(() => void this.#probe(), 50)
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  add<Pod extends BalancedPod>(pod: Pod): Pod {
    this.#pods.add(pod)
    return pod
  }

  isReady(pod: BalancedPod): boolean {
    return this.#ready.has(pod)
  }

  async #probe(): Promise<void> {
    for (const pod of this.#pods) {
      if (await pod.isReady()) this.#ready.add(pod)
      else this.#ready.delete(pod)
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#server.close()
  }
}
