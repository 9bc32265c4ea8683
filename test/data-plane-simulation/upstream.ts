/** A server of a world that speaks HTTP/1.1 and, if the client begins with its preface, HTTP/2. */
import type { Machine } from '../virtual-time/world.ts'
import type { End, Network } from './network.ts'

/** Takes over a connection; the bytes that have arrived follow. */
type Serve = (isHttp2: boolean, upstream: Upstream, end: End) => void

/** What tells a preface from every method. */
const prefaceStart = 'PRI'

export class Upstream {
  readonly name: string
  readonly machine: Machine
  open = 0

  constructor(
    machine: Machine,
    address: { readonly host: string; readonly port: number },
    network: Network,
    serve: Serve,
  ) {
    this.name = machine.name
    this.machine = machine
    network.listen(address, machine, (end) => this.#accept(end, serve))
  }

  #accept(end: End, serve: Serve): void {
    let first = Buffer.alloc(0)
    const leave = () => {
      end.close()
      this.open--
    }
    this.open++
    end.receiver = {
      onBytes: (bytes) => {
        first = Buffer.concat([first, bytes])
        if (first.length < prefaceStart.length) return
        const isHttp2 = first.toString('latin1', 0, prefaceStart.length) === prefaceStart
        serve(isHttp2, this, end)
        end.receiver.onBytes(first)
      },
      onEnd: leave,
      onReset: leave,
    }
    end.read()
  }
}
