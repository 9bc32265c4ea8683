/** A server of a world that speaks HTTP/1.1 and, if the client begins with its preface, HTTP/2. */
import { Machine } from '../virtual-time/world.ts'
import { Http1Service, type UpstreamOwner } from './http1-upstream.ts'
import { Http2Service } from './http2-upstream.ts'
import type { End } from './network.ts'

/** What tells a preface from every method. */
const prefaceStart = 'PRI'

export class Upstream {
  readonly name: string
  readonly machine: Machine
  open = 0

  constructor(name: string, address: { host: string; port: number }, owner: UpstreamOwner) {
    this.name = name
    this.machine = new Machine(name)
    owner.network.listen(address, this.machine, (end) => this.#accept(end, owner))
  }

  #accept(end: End, owner: UpstreamOwner): void {
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
        const Service = isHttp2 ? Http2Service : Http1Service
        new Service(this, end, owner)
        end.receiver.onBytes(first)
      },
      onEnd: leave,
      onReset: leave,
    }
    end.read()
  }
}
