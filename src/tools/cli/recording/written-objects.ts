import type { ResourceApplied } from '../../../../events/index.ts'
import { builtInFile, inOrder } from '../../../control/watch/claim-book.ts'
import type { Recording } from './recording.ts'

type WrittenObject = ResourceApplied['data'] & {
  readonly origin: { readonly file: string; readonly line: number }
}

/** The objects from manifests, without built-in ones, in the order of the files. The log has its own order. */
export function writtenObjects({ events }: Pick<Recording, 'events'>): WrittenObject[] {
  return events
    .flatMap(({ event }) => (event.type === 'dev.sluice.resource.applied.v1' ? [event.data] : []))
    .filter(isWritten)
    .sort(inOrder)
}

function isWritten(data: ResourceApplied['data']): data is WrittenObject {
  return data.origin?.line !== undefined && data.origin.file !== builtInFile
}
