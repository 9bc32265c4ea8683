/** Finds certificates in manifests that are not valid now or expire soon. */
import { certificateProblems } from '../../../control/plane/certificate-dates.ts'
import type { SourceProblem } from '../../../control/watch/source-problem.ts'
import { objectKey } from '../../../ground/model/names.ts'
import type { Fold } from '../../../past/replay/index.ts'
import type { FieldPlaces } from '../recording/field-places.ts'
import type { Recording } from '../recording/recording.ts'
import { writtenObjects } from '../recording/written-objects.ts'

/** One warning for each entry of a Secret or ConfigMap, at a time in milliseconds since 1970. */
export function certificateWarnings(
  recording: Pick<Recording, 'events'>,
  fold: Fold,
  places: FieldPlaces,
  now: number,
): SourceProblem[] {
  return writtenObjects(recording).flatMap((written) => {
    const { kind, namespace, name } = written
    const state = fold.graph.object(objectKey({ kind, namespace, name }))
    if (state === undefined) return []
    return certificateProblems(state, now).map(({ entry, message }): SourceProblem => {
      const path = `data["${entry}"]`
      const place = places.find(written, path)
      const common = { severity: 'warning', reason: 'certificate', kind, namespace, name } as const
      return { ...common, ...place, path, message }
    })
  })
}
