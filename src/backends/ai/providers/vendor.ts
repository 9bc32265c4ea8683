/**
 * The contract of a vendor of language models, told once. A vendor is one folder, whose `index.ts`
 * exports this, and one line in the table of `providers/index.ts`.
 *
 *   config     what users may write below the vendor's name (control plane, CRDs, validation); its
 *              fields are those of `ProviderConfig`, which is what the proxy receives
 *   provider   how the vendor is called; only proxies load it, at start
 */
import type { ProviderConfig } from '../../../model/model-providers.ts'
import { object, optional, type Property, type Schema } from '../../../schema/field.ts'
import { shortString } from '../../../schema/strings.ts'
import type { Provider } from './provider.ts'

export interface Vendor {
  readonly config: Property<Omit<ProviderConfig, 'vendor'>, false>
  provider(): Promise<{ readonly default: Provider }>
}

/** The field by which most vendors let users settle the model. */
export const model = optional(
  shortString,
  'Model that is asked for, whatever the request says; the model of the request where unset.',
)

/** The config of a vendor that has nothing else to settle. */
export const modelOnly = (name: string): Schema<{ readonly model?: string }> =>
  object(name, { model })
