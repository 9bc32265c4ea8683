/** The commands that people with the role `operate` may run. They append the same events as on the command line. */
import { type ApproveOptions, approve, reject } from '../approve/approve.ts'
import { changeDynamicKeys, type DynamicChange } from '../keys/dynamic-keys.ts'
import {
  type CreateOptions,
  createdKey,
  deletedKey,
  disabledKey,
  type KeyChange,
  rotatedKey,
} from '../keys/keys.ts'
import type { OperatorChange } from '../recording/operator-change.ts'
import {
  type FreezeOptions,
  freeze,
  lift,
  type RollbackOptions,
  rollback,
} from '../rollback/rollback.ts'
import type { Output } from '../shared/output.ts'
import { type ApproveOptions as ApproveToolsOptions, approveItems } from '../tools/approve.ts'
import { type CommandPlace, type ConsoleCommand, log, printed } from './console-command.ts'

const pin = { reason: 'text', only: 'texts', until: 'text' } as const
const key = { name: 'text', namespace: 'text', reason: 'text' } as const
const prefix = 'sk-'

interface KeyOptions extends DynamicChange {
  readonly name: string
}

async function changeKey(
  { namespace, reason, author }: DynamicChange,
  place: CommandPlace,
  output: Output,
  { change, result }: KeyChange,
): Promise<number> {
  const about = { ...(namespace && { namespace }), reason, author }
  await changeDynamicKeys({ ...log(place), ...about } as DynamicChange, output.report, change)
  return printed(Promise.resolve(result), output)
}

export const actions: Readonly<Record<string, ConsoleCommand>> = {
  rollback: {
    takes: { ...pin, to: 'text', untilChanged: 'flag' },
    run: (options: RollbackOptions & { readonly to: string }, place, output) =>
      printed(rollback({ ...options, ...log(place) }, output.report), output),
  },
  freeze: {
    takes: pin,
    run: (options: FreezeOptions, place, output) =>
      printed(freeze({ ...options, ...log(place) }, output.report), output),
  },
  lift: {
    takes: { reason: 'text' },
    run: (options: OperatorChange, place, output) =>
      printed(lift({ ...options, ...log(place) }, output.report), output),
  },
  'approve-change': {
    takes: { position: 'text', emergency: 'flag', reason: 'text' },
    run: (options: ApproveOptions, place, output) =>
      printed(approve({ ...options, ...log(place) }, output.report), output),
  },
  'reject-change': {
    takes: { position: 'text', reason: 'text' },
    run: (options: ApproveOptions, place, output) =>
      printed(reject({ ...options, ...log(place) }, output.report), output),
  },
  'approve-tools': {
    takes: {
      backend: 'text',
      target: 'text',
      list: 'text',
      item: 'texts',
      at: 'text',
      revoke: 'flag',
      reason: 'text',
    },
    run: (
      { backend, ...options }: ApproveToolsOptions & { readonly backend: string },
      place,
      output,
    ) => printed(approveItems(backend, { ...options, ...log(place) }, output.report), output),
  },
  'create-key': {
    takes: { ...key, owner: 'text', team: 'text', model: 'texts', route: 'texts', expires: 'text' },
    run: (options: KeyOptions & Omit<CreateOptions, 'file'>, place, output) =>
      changeKey(options, place, output, createdKey(options.name, { ...options, prefix })),
  },
  'rotate-key': {
    takes: { ...key, overlap: 'text' },
    run: (options: KeyOptions & { readonly overlap?: string }, place, output) =>
      changeKey(
        options,
        place,
        output,
        rotatedKey(options.name, { overlap: options.overlap ?? '24h', prefix }),
      ),
  },
  'disable-key': {
    takes: key,
    run: (options: KeyOptions, place, output) =>
      changeKey(options, place, output, disabledKey(options.name, true)),
  },
  'enable-key': {
    takes: key,
    run: (options: KeyOptions, place, output) =>
      changeKey(options, place, output, disabledKey(options.name, false)),
  },
  'delete-key': {
    takes: key,
    run: (options: KeyOptions, place, output) =>
      changeKey(options, place, output, deletedKey(options.name)),
  },
}
