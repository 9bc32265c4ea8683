/** Compiled GatewayBackends of A2A agents. */
import { canonicalJson } from '../../../../ground/base/canonical.ts'
import { hexDigest } from '../../../../ground/base/digest.ts'
import type { JsonObject } from '../../../../ground/base/json-object.ts'
import { maxDefinitionLength } from '../../../../ground/model/mcp-lists.ts'
import type { Destinations } from '../../../../ground/model/resources.ts'
import { type FixedHost, fixedHost } from '../../../proxy/request/fixed-host.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { type CardTarget, cardItem, cardList } from '../protocol/card-list.ts'
import { PushUrlCheck } from './push-urls.ts'

export class A2aBackend {
  readonly host: FixedHost
  /** Host and port, as in an authority. */
  readonly authority: string
  readonly push: PushUrlCheck
  readonly #settings: Destinations['a2a']
  /** Digests of the cards that this thread reported last. */
  readonly #reported: Map<CardTarget, string>

  constructor(settings: Destinations['a2a'], before: A2aBackend | undefined) {
    this.#settings = settings
    this.host = fixedHost(settings)
    this.authority = `${settings.host}:${settings.port}`
    this.push = new PushUrlCheck(settings.push)
    this.#reported = before?.authority === this.authority ? before.#reported : new Map()
  }

  /** Whether clients may get the version of a card. */
  isApproved(target: CardTarget, digest: string): boolean {
    const pins = this.#settings.pins?.find((one) => one.target === target)
    return pins === undefined || pins.items.some((one) => one.digest === digest)
  }

  /** Reports a card that this thread has not reported last. Returns its digest. */
  see(
    backend: string,
    target: CardTarget,
    card: JsonObject,
    { reportList }: Pick<GatewayRuntime, 'reportList'>,
  ): string {
    const definition = canonicalJson(card)
    const digest = hexDigest('sha256', definition)
    const isFirst = !this.#reported.has(target)
    if (this.#reported.get(target) === digest || reportList === undefined) return digest
    this.#reported.set(target, digest)
    const isShort = definition.length <= maxDefinitionLength
    reportList({
      backend,
      target,
      list: cardList,
      pinning: this.#settings.pinning ?? 'Off',
      items: [{ name: cardItem, digest, ...(isShort && { definition }) }],
      removed: [],
      isComplete: true,
      isFirst,
      isLast: true,
    })
    return digest
  }
}
