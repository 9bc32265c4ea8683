/** Converts providers of models to the messages of proto/resource.proto and back, where they differ. */
import {
  type ModelProvider,
  modelChoices,
  type ProviderConfig,
  type ProviderGroup,
  type ServedModel,
} from '../../../ground/model/model-providers.ts'
import { vendorNames } from './providers/index.ts'

type ProviderMessage = Omit<ModelProvider, 'config'> & ProviderConfig

interface AiMembers {
  readonly groups: readonly ProviderGroup[]
  readonly models?: readonly ServedModel[]
}

interface AiMessage {
  readonly groups: readonly ProviderGroup[]
  readonly models?: { readonly all: readonly ServedModel[]; readonly providers: ProviderGroup }
}

export const aiShapes = {
  'Backend.Group': {
    toWire: (providers: ProviderGroup) => ({ providers }),
    fromWire: ({ providers }: { readonly providers: ProviderGroup }) => providers,
  },
  'Backend.Ai': {
    toWire({ models, groups, ...rest }: AiMembers) {
      return models === undefined
        ? { ...rest, groups }
        : { ...rest, groups: [], models: { all: models, providers: groups.flat() } }
    },
    fromWire: ({ models, groups, ...rest }: AiMessage) =>
      models === undefined
        ? { ...rest, groups }
        : { ...rest, groups: [models.providers], models: models.all },
  },
  'Backend.Model': { words: { choice: modelChoices } },
  'Backend.Provider': {
    words: { vendor: vendorNames },
    toWire: ({ config, ...provider }: ModelProvider) => ({ formats: [], ...provider, ...config }),
    fromWire({ formats = [], ...message }: ProviderMessage) {
      const { name, host, port, path, owner, target, isTls, ...config } = message
      return {
        ...(name !== undefined && { name }),
        ...(host !== undefined && { host }),
        ...(port !== undefined && { port }),
        ...(path !== undefined && { path }),
        ...(owner !== undefined && { owner }),
        ...(target !== undefined && { target }),
        ...(isTls !== undefined && { isTls }),
        config: { ...config, ...(formats.length > 0 && { formats }) },
      }
    },
  },
} as const
