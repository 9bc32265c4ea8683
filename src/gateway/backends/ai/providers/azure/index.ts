import { choice, object, optional, required, text } from '../../../../../ground/schema/field.ts'
import { rule } from '../../../../../ground/schema/rules.ts'
import { shortString, tinyString } from '../../../../../ground/schema/strings.ts'
import { defineSpelling, model } from '../vendor.ts'

interface Resource {
  readonly resourceType: string
  readonly projectName?: string
}

const resource = text({
  min: 1,
  max: 64,
  pattern: '^[A-Za-z0-9-]+$',
  expects: "letters, digits and '-'",
})

const domains = { OpenAI: 'openai.azure.com', Foundry: 'services.ai.azure.com' } as const

const fields = {
  resourceName: required(resource, 'Resource, which is the first part of the host.'),
  resourceType: required(
    choice('AzureResourceType', {
      OpenAI: 'a resource of Azure OpenAI ({resourceName}.openai.azure.com)',
      Foundry: 'a project of Azure AI Foundry ({resourceName}.services.ai.azure.com)',
    }),
    'Kind of the resource.',
  ),
  apiVersion: optional(tinyString, { doc: 'Version of the vendor API.', default: 'v1' }),
  projectName: optional(shortString, 'Project; required for Foundry.'),
} as const

const rules = [
  rule<Resource>({
    message: 'projectName is required for Foundry',
    cel: "self.resourceType != 'Foundry' || has(self.projectName)",
    holds: ({ resourceType, projectName }) =>
      resourceType !== 'Foundry' || projectName !== undefined,
    at: 'projectName',
  }),
]

const config = object('AzureConfig', { model, ...fields }, { rules })

/** The settings without a model, for models that are objects of their own. */
export const azureModel = object('AzureModelConfig', fields, { rules })

/** Azure by the names of its resources: vendor B at the host of the resource. */
export const azure = defineSpelling({
  config: optional(config, 'Azure OpenAI or Azure AI Foundry, by the name of the resource.'),
  needsHost: false,
  toConfig({ resourceName, resourceType, projectName, ...set }) {
    const endpoint = `${resourceName}.${domains[resourceType]}`
    const base = { ...set, vendor: 'vendorB', endpoint }
    if (projectName === undefined) return base
    return { ...base, pathPrefix: `/api/projects/${encodeURIComponent(projectName)}/openai/v1` }
  },
})
