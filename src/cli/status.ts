/** `sluice status` prints the conditions of every object and the state of every proxy. */
import { type Fold, foldVersion } from '../replay/index.ts'
import { placedConditions } from './conditions.ts'
import { objectText } from './object-names.ts'
import { type Answer, type Output, table } from './output.ts'
import { foldRecording, type RecordingOptions, readRecording } from './recording.ts'

const statusHeader = ['OBJECT', 'PLACE', 'CONDITION', 'STATUS', 'REASON', 'MESSAGE']

function statusRows(fold: Fold): string[][] {
  return fold.statuses().flatMap(([ref, status]) =>
    placedConditions(status).map(({ place, condition }) => {
      const { type, status: value, reason, message } = condition
      return [objectText(ref), place, type, value, reason, message]
    }),
  )
}

const proxyHeader = [
  'PROXY',
  'GATEWAY',
  'REPLICA',
  'ADDRESS',
  'VERSION',
  'STATE',
  'IN FORCE',
  'REFUSED',
]

/** A row for each proxy in the log: where it is connected, and which configuration it has applied. */
function proxyRows(fold: Fold): string[][] {
  return fold
    .proxies()
    .map(({ proxy, gateway, replica, address, version, state, watermark, rejections }) => [
      proxy,
      gateway ?? 'all',
      replica ?? '',
      address ?? '',
      version ?? '',
      state,
      watermark < 0 ? '' : String(watermark),
      String(Object.keys(rejections).length),
    ])
}

/** Object versions that were refused, with the reasons. */
function refusals(fold: Fold) {
  return [...fold.graph.objects()].flatMap(({ ref, refused }) =>
    refused === undefined ? [] : [{ ...ref, problems: refused.problems }],
  )
}

function statusText(fold: Fold): string[] {
  const proxies = proxyRows(fold)
  return [
    table([statusHeader, ...statusRows(fold)]),
    ...(proxies.length === 0 ? [] : [`\n${table([proxyHeader, ...proxies])}`]),
    ...refusals(fold).flatMap(({ problems, ...ref }) =>
      problems.map(({ path, message }) => `refused: ${objectText(ref)}: ${path}: ${message}`),
    ),
  ]
}

export async function status(options: RecordingOptions, report: Output['report']): Promise<Answer> {
  const recording = await readRecording(options, report)
  const { state, first } = recording.extent
  const fold = await foldRecording(recording)
  return {
    text: () => statusText(fold),
    json: {
      objects: fold.statuses().map(([ref, decided]) => ({ ...ref, status: decided })),
      refused: refusals(fold),
      proxies: fold.proxies(),
      digests: fold.digests(),
      foldVersion,
      history: { state, first },
    },
  }
}
