/** One simulator of each vendor, and one gateway that leads to them. */
import { useFixture } from '../fixture.ts'
import { freePort, type RunningGateway, startGateway } from '../gateway.ts'
import { aiBackend, gateway, httpRoute, manifest, secret, toBackend } from '../manifests.ts'
import type { SigningKeys } from './aws-signature.ts'
import type { Vendor } from './vendor.ts'
import { startVendorA } from './vendor-a.ts'
import { startVendorB } from './vendor-b.ts'
import { startVendorC } from './vendor-c.ts'
import { startVendorD } from './vendor-d.ts'
import { startVendorE } from './vendor-e.ts'
import { startVendorF } from './vendor-f.ts'

type Fields = Readonly<Record<string, unknown>>
type Letter = 'a' | 'b' | 'c' | 'd' | 'e' | 'f'

/** What the simulator of vendorF takes; the Secret `aws` holds them. */
export const signingKeys: SigningKeys = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'session-token',
}

/** Paths of official SDKs, and the format of each. */
export const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/messages/count_tokens': 'VendorCTokenCount',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
  '/v1/models': 'Models',
}

const policies = { ai: { routes }, auth: { key: 'gateway-key' } }

/** A backend with one provider and the route to it, below a path of its name that is cut off. */
export function reached(name: string, provider: Fields, more: Fields = {}): readonly Fields[] {
  return reachedBackend(name, { provider }, more)
}

export function reachedBackend(name: string, ai: Fields, more: Fields = {}): readonly Fields[] {
  const cut = { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' }
  return [
    aiBackend(name, ai, { ...policies, ...more }),
    httpRoute(name, {
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
          filters: [{ type: 'URLRewrite', urlRewrite: { path: cut } }],
          backendRefs: [toBackend(name)],
        },
      ],
    }),
  ]
}

export interface FleetPlaces {
  /** Host and port of a simulator, for a provider. */
  at(vendor: Letter): { readonly host: string; readonly port: number }
  /** For which the simulator of vendorF takes signatures. */
  readonly region: string
}

export interface Fleet {
  readonly vendors: Readonly<Record<Letter, Vendor>>
  readonly running: RunningGateway
  /** Where a backend of `reached` is served. */
  base(name: string): string
  lastCall(vendor: Letter): Vendor['calls'][number] | undefined
  /** Calls so far, and answers that were not asked for. */
  forget(): void
  dispose(): Promise<void>
}

/** A fleet for the time of the tests. */
export function useFleet(...options: Parameters<typeof startFleet>): Fleet {
  return useFixture(() => startFleet(...options))
}

/** `objects`: lists of manifests in addition to the Gateway and the Secret `aws`. */
export async function startFleet(
  objects: (places: FleetPlaces) => readonly (readonly Fields[])[],
  env: Readonly<Record<string, string>> = {},
): Promise<Fleet> {
  const region = 'eu-central-1'
  const [a, b, c, d, e, f] = await Promise.all([
    startVendorA(),
    startVendorB(),
    startVendorC(),
    startVendorD(),
    startVendorE(),
    startVendorF({ keys: signingKeys, region }),
  ])
  const vendors = { a, b, c, d, e, f }
  const port = await freePort()
  const at = (vendor: Letter) => ({ host: '127.0.0.1', port: vendors[vendor].port })
  const aws = secret('aws', {
    accessKey: signingKeys.accessKeyId,
    secretKey: signingKeys.secretAccessKey,
    sessionToken: signingKeys.sessionToken ?? '',
  })
  const all = manifest(gateway(port), aws, ...objects({ at, region }).flat())
  const running = await startGateway({ manifests: { 'all.yaml': all }, env })
  const answers = new Map(Object.values(vendors).map((vendor) => [vendor, vendor.answer]))
  return {
    vendors,
    running,
    base: (name) => `http://127.0.0.1:${port}/${name}`,
    lastCall: (vendor) => vendors[vendor].calls.at(-1),
    forget() {
      for (const [vendor, answer] of answers) {
        vendor.calls.length = 0
        vendor.next.length = 0
        vendor.answer = answer
      }
    },
    async dispose() {
      await running.dispose()
      await Promise.all(Object.values(vendors).map((vendor) => vendor.close()))
    },
  }
}
