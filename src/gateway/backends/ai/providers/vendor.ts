/**
 * The contract of a vendor of language models. A vendor is one folder and one line in the table of
 * `providers/index.ts`.
 *
 *   config     what users may write below the vendor's name (control plane, CRDs, validation); its
 *              fields are those of `ProviderConfig`, which is what the proxy receives
 *   provider   how to call the vendor; only proxies load it, at start
 *
 * A service that speaks the formats of a vendor is a line in `presets.ts`.
 */
import type { ProviderConfig } from '../../../../ground/model/model-providers.ts'
import { object, optional, type Property } from '../../../../ground/schema/field.ts'
import { shortString } from '../../../../ground/schema/strings.ts'
import type { Provider } from './provider.ts'

export interface Vendor {
  readonly config: Property<Omit<ProviderConfig, 'vendor'>, false>
  provider(): Promise<{ readonly default: Provider }>
}

/** Another name for settings of a vendor, so that proxies need not know it. */
export interface Spelling<Spec> {
  readonly config: Property<Spec, false>
  /** True if users must set `host`. */
  readonly needsHost: boolean
  toConfig(spec: Spec): ProviderConfig
}

/** Infers the type of what users write. */
export const defineSpelling = <Spec>(spelling: Spelling<Spec>): Spelling<Spec> => spelling

/** The field that sets the model, which most vendors have. */
export const model = optional(
  shortString,
  'Model that replaces the one in the request. If not set, the model of the request is used.',
)

/** Defines a vendor whose only field is `model`; `name` is the name of its config in the API. */
export const modelOnly = (name: string, doc: string, provider: Vendor['provider']) => ({
  config: optional(object(name, { model }), doc),
  provider,
})
