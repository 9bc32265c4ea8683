/** Azure AI Content Safety: text:analyze, text:shieldPrompt and the older text:detectJailbreak. */
import {
  booleanAt,
  field,
  listAt,
  numberAt,
  objectAt,
  stringAt,
} from '../../../../../engines/messages/json/json.ts'
import { guardFailure } from '../guard-call.ts'
import type { AzureConfig } from './config.ts'
import { type GuardService, type Piece, passes, type Verdict } from './service.ts'
import { piecesOf } from './split.ts'

/** A text may have 10,000 characters. Texts are joined by line breaks. */
const limits = { length: 9_900, parts: 100 }
/** A call may have 5 documents, and 10,000 characters in all of them. */
const documentLimits = { length: 9_900, parts: 5 }

const joined = ({ parts }: Piece): string => parts.map(({ content }) => content).join('\n')

const marked = (check: string, pieces: readonly Piece[]): Piece[] =>
  pieces.map(({ parts }) => ({ parts, check }))

export const azure: GuardService<AzureConfig> = {
  masks: () => false,
  host: ({ host }) => host,
  split(texts, direction, { analyzeText, promptShield, detectJailbreak }) {
    const isTool = ({ role }: { readonly role: string }) => role === 'tool'
    const isRequest = direction === 'request'
    const whole = piecesOf(texts, limits)
    const pieces = analyzeText === undefined ? [] : marked('analyze', whole)
    if (!isRequest) return pieces
    if (promptShield !== undefined) {
      const prompts = piecesOf(
        texts.filter((text) => !isTool(text)),
        limits,
      )
      pieces.push(...marked('shield', prompts))
      pieces.push(...marked('documents', piecesOf(texts.filter(isTool), documentLimits)))
    }
    if (detectJailbreak !== undefined) pieces.push(...marked('jailbreak', whole))
    return pieces
  },
  call(piece, _, { analyzeText, promptShield, detectJailbreak }) {
    const at = (name: string, version: string | undefined) =>
      `/contentsafety/text:${name}?api-version=${encodeURIComponent(version ?? '')}`
    switch (piece.check) {
      case 'shield':
        return {
          path: at('shieldPrompt', promptShield?.apiVersion),
          body: { userPrompt: joined(piece), documents: [] },
        }
      case 'documents': {
        const documents = piece.parts.map(({ content }) => content)
        const path = at('shieldPrompt', promptShield?.apiVersion)
        return { path, body: { userPrompt: '', documents } }
      }
      case 'jailbreak':
        return {
          path: at('detectJailbreak', detectJailbreak?.apiVersion),
          body: { text: joined(piece) },
        }
      default: {
        const {
          severityThreshold = 2,
          blocklistNames = [],
          haltOnBlocklistHit = false,
        } = analyzeText ?? {}
        // Levels with an odd number exist only among eight.
        const outputType =
          severityThreshold % 2 === 0 ? 'FourSeverityLevels' : 'EightSeverityLevels'
        const text = joined(piece)
        return {
          path: at('analyze', analyzeText?.apiVersion),
          body: { text, blocklistNames, haltOnBlocklistHit, outputType },
        }
      }
    }
  },
  verdict(answer, { check, parts }, { analyzeText }): Verdict {
    if (check === 'shield') {
      return attackIn([objectAt(answer, 'userPromptAnalysis')], 1, 'promptShield')
    }
    if (check === 'documents') {
      return attackIn(listAt(answer, 'documentsAnalysis'), parts.length, 'documentShield')
    }
    if (check === 'jailbreak') {
      return attackIn([objectAt(answer, 'jailbreakAnalysis')], 1, 'jailbreak', 'detected')
    }
    return analysisOf(answer, analyzeText?.severityThreshold ?? 2)
  },
}

function attackIn(
  results: readonly unknown[],
  count: number,
  name: string,
  member = 'attackDetected',
): Verdict {
  const found = results.map((result) => booleanAt(result, member))
  if (found.length !== count || found.includes(undefined)) {
    throw guardFailure(`Azure AI Content Safety gave no result of ${name}`)
  }
  return found.includes(true) ? { rejects: true, matches: [name] } : passes
}

function analysisOf(answer: unknown, threshold: number): Verdict {
  const categories = listAt(answer, 'categoriesAnalysis')
  const blocklists = listAt(answer, 'blocklistsMatch')
  const isKnown =
    Array.isArray(field(answer, 'categoriesAnalysis')) &&
    categories.every((one) => stringAt(one, 'category') !== undefined) &&
    categories.every((one) => numberAt(one, 'severity') !== undefined)
  // If a blocklist matches, the analysis may stop before the categories.
  if (!isKnown || categories.length + blocklists.length === 0) {
    throw guardFailure('Azure AI Content Safety gave no severities')
  }
  const matches = [
    ...categories
      .filter((one) => (numberAt(one, 'severity') ?? 0) >= threshold)
      .map((one) => stringAt(one, 'category') ?? ''),
    ...blocklists.map((one) => `blocklist/${stringAt(one, 'blocklistName') ?? ''}`),
  ]
  return matches.length > 0 ? { rejects: true, matches } : passes
}
