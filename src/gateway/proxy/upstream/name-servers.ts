/**
 * Asks DNS servers. If a server does not answer for a moment, the next one is asked as well, and the first answer
 * counts. The server that answered is asked first from then on.
 */
import { Resolver } from 'node:dns/promises'

export interface AddressRecord {
  readonly address: string
  /** In seconds. */
  readonly ttl: number
}

type RecordType = 'A' | 'AAAA'

const nextServerMs = 300
/** The server has answered that there are no such records. Another one would say the same. */
const negativeCodes = new Set(['ENOTFOUND', 'ENODATA'])

export class NameServers {
  readonly #resolvers: readonly Resolver[]
  /** Index of the server to ask first. */
  #first = 0

  /** `servers` replace those of the machine. */
  constructor(servers?: readonly string[]) {
    const machine = newResolver(servers)
    const all = machine.getServers()
    // The resolver of the machine reads the configuration again if that has no server.
    this.#resolvers = all.length < 2 ? [machine] : all.map((server) => newResolver([server]))
  }

  /** The records of a name. Rejects with the error of DNS if there are none. */
  ask(name: string, type: RecordType): Promise<readonly AddressRecord[]> {
    const count = this.#resolvers.length
    const { promise, resolve, reject } = Promise.withResolvers<readonly AddressRecord[]>()
    const begun = this.#first
    let asked = 0
    let failed = 0
    let timer: NodeJS.Timeout | undefined
    const askNext = (): void => {
      clearTimeout(timer)
      if (asked === count) return
      const index = (begun + asked++) % count
      if (asked < count) timer = setTimeout(askNext, nextServerMs)
      const end = (isAnswered: boolean) => {
        if (isAnswered) {
          clearTimeout(timer)
          this.#first = index
        } else {
          failed++
          askNext()
        }
      }
      query(this.#resolvers[index], name, type).then(
        (records) => {
          end(true)
          resolve(records)
        },
        (error: NodeJS.ErrnoException) => {
          const isNegative = negativeCodes.has(error.code ?? '')
          end(isNegative)
          if (isNegative || failed === count) reject(error)
        },
      )
    }
    askNext()
    return promise
  }
}

function newResolver(servers: readonly string[] | undefined): Resolver {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  return resolver
}

async function query(
  resolver: Resolver | undefined,
  name: string,
  type: RecordType,
): Promise<readonly AddressRecord[]> {
  if (resolver === undefined) throw new Error('no DNS server')
  return type === 'A'
    ? resolver.resolve4(name, { ttl: true })
    : resolver.resolve6(name, { ttl: true })
}
