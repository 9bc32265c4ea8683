/** Which answers of a processor the gateway understands. It must not treat any other as consent. */
import type {
  CommonResponse,
  ProcessingResponse,
} from '../../../../proto/gen/called/ext_proc_pb.ts'

/** Number of Envoy's status CONTINUE_AND_REPLACE: the processor replaces the body and sends no further answers to it. */
export const continueAndReplace = 1

/** Returns what is not understood in an answer; undefined if all of its decisions are. */
export function notUnderstood({ response }: ProcessingResponse): string | undefined {
  switch (response.case) {
    case 'requestHeaders':
    case 'responseHeaders':
    case 'requestBody':
    case 'responseBody':
      return problemOf(response.value.response)
    default:
      return undefined
  }
}

function problemOf(common: CommonResponse | undefined): string | undefined {
  if (common === undefined) return undefined
  const { status, bodyMutation } = common
  if (status !== 0 && status !== continueAndReplace) return `it answered with the status ${status}`
  const isUnknown =
    bodyMutation?.mutation.case === undefined && bodyMutation?.$unknown !== undefined
  return isUnknown ? 'it answered with an unknown change of a body' : undefined
}
