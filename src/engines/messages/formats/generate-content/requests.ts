/** What all requests of vendor D's clients have in common. */
import { anyObject } from '../../common/shape.ts'
import type { ErrorForm } from '../../format.ts'
import type { JsonObject } from '../../json/json.ts'
import { generateContentHistory } from './history.ts'
import { generateContentTexts } from './own-texts.ts'
import { readGeneratePath } from './path.ts'
import { readGoogleError } from './response.ts'
import { refuseStored, storedMembers } from './stored.ts'
import { writeGoogleError } from './write-response.ts'

export const googleErrors: ErrorForm = {
  name: 'google',
  read: readGoogleError,
  write: writeGoogleError,
}

/** Headers of SDKs of vendor D, and of Gemini CLI. */
const googleHeaders = /^x-(?:goog|gemini)-/

export const generateContentRequests = {
  inPath: readGeneratePath,
  withoutPath: ({ model: _model, stream: _stream, ...body }: JsonObject): JsonObject => body,
  errors: googleErrors,
  vendorHeaders: googleHeaders,
  ownTexts: generateContentTexts,
  // Names of members have two forms, so that readers check the shape themselves.
  shape: anyObject,
  history: generateContentHistory,
  stored: { members: storedMembers, open: refuseStored },
  textMembers: ['contents', 'systeminstruction', 'system_instruction'],
  limitMembers: [],
  decidedMembers: [],
}
