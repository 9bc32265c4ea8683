/** GenerateContent of vendor D. */
import type { ProviderFormat } from '../../format.ts'
import { GenerateContentReader, readGenerateContent, readGoogleError } from './response.ts'
import { writeGenerateContentRequest } from './write-request.ts'

export const generateContent: ProviderFormat = {
  labels: {
    // Requests contain no call ids.
    maxIdLength: 64,
    maxNameLength: 64,
    notInNames: /[^A-Za-z0-9_.:-]/g,
    nameStart: /^[A-Za-z_]/,
  },
  framing: 'sse',
  writeRequest: writeGenerateContentRequest,
  readResponse: (body, { model, newId }) => readGenerateContent(body, model, newId),
  reader: ({ model, newId }) => new GenerateContentReader(model, newId),
  readError: readGoogleError,
  responseFields: ['candidates', 'promptFeedback'],
}
