/** Converts providers of models to the messages of proto/resource.proto and back, where they differ. */
import type {
  ModelProvider,
  ProviderConfig,
  ProviderGroup,
} from '../../../ground/model/model-providers.ts'
import { vendorNames } from './providers/index.ts'

type ProviderMessage = Omit<ModelProvider, 'config'> & ProviderConfig

export const aiShapes = {
  'Backend.Group': {
    toWire: (providers: ProviderGroup) => ({ providers }),
    fromWire: ({ providers }: { readonly providers: ProviderGroup }) => providers,
  },
  'Backend.Provider': {
    words: { vendor: vendorNames },
    toWire: ({ config, ...provider }: ModelProvider) => ({ ...provider, ...config }),
    fromWire: ({ name, host, port, path, ...config }: ProviderMessage) => ({
      ...(name !== undefined && { name }),
      ...(host !== undefined && { host }),
      ...(port !== undefined && { port }),
      ...(path !== undefined && { path }),
      config,
    }),
  },
} as const
