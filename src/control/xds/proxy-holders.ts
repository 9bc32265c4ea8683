/** Connects the holders of budgets of one proxy to the ledger, over the proxy's stream. */
import type { ConnectLedger, HolderReport, LedgerConnection } from '../../ground/model/budgets.ts'
import { encodeLedgerResponse } from '../wire/discovery.ts'

export class ProxyHolders {
  readonly #proxy: string
  readonly #connect: ConnectLedger | undefined
  readonly #write: (bytes: Uint8Array) => void
  readonly #connections = new Map<string, LedgerConnection>()
  #isClosed = false

  constructor(
    proxy: string,
    connect: ConnectLedger | undefined,
    write: (bytes: Uint8Array) => void,
  ) {
    this.#proxy = proxy
    this.#connect = connect
    this.#write = write
  }

  /** @throws if the holder is not one of this proxy, which must not spend the allowances of another one */
  report(report: HolderReport): void {
    const { holder } = report
    if (!holder.startsWith(`${this.#proxy}~`)) {
      throw new Error(`${holder} is no holder of proxy ${this.#proxy}`)
    }
    if (this.#isClosed || this.#connect === undefined) return
    let connection = this.#connections.get(holder)
    if (connection === undefined) {
      connection = this.#connect(holder, (update) => {
        if (!this.#isClosed) this.#write(encodeLedgerResponse({ holder, ...update }))
      })
      this.#connections.set(holder, connection)
    }
    connection.report(report)
  }

  close(): void {
    this.#isClosed = true
    for (const connection of this.#connections.values()) connection.close()
  }
}
