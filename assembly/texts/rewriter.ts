// A rewriter reads one message and writes it with masked texts. Without guards it only reads, and the bytes come
// out as they are.
import { blockAlloc, blockFree } from '../arena'
import { ERROR_ARGUMENT, ERROR_MEMORY } from '../abi'
import {
  TEXTS_COMPLETIONS, TEXTS_ERROR, TEXTS_MALFORMED, TEXTS_MESSAGES, TEXTS_REQUEST, TEXTS_RESPONSES, TEXTS_STREAM, TEXTS_TOKEN_COUNT,
  TEXTS_TOO_LARGE,
} from './abi'
import { dropHandle, HANDLE_TEXTS, newHandle, recordOf } from '../regex/handles'
import { freeStreamRecord } from '../regex/stream'
import { refuse, setOrigin } from '../refusal'
import { append, appendAscii, appendNumber, clear, clearFailure, failure, freeBytes, freeRecord, newBytes, newRecord, setFailure } from './bytes'
import { GUARD_LIMIT, guardsOf, releaseGuards, retainGuards } from './chain'
import { maskAnswer, maskRequest } from './content'
import { readDetails } from './details'
import { beginEdits, sortEdits, writeTape } from './edits'
import { finishStream } from './events'
import { maskEvery, needAnswer, needRequest } from './forms'
import { newMasked } from './masked'
import { freeMatches } from './matches'
import { maskRepeated } from './repeated'
import { freeSse, newSse, readEvents, Sse } from './sse'
import { isGuarded, Rewriter, rw, select } from './state'
import { appendString } from './strings'
import { parseDocument, readOffset } from './parse'
import { freeStream, newStream } from './stream'
import { forgetDocument, isKind, KIND_OBJECT } from './tape'

export function rewriterOf(handle: i32): Rewriter {
  return changetype<Rewriter>(recordOf(handle, HANDLE_TEXTS))
}

export function newRewriter(guards: i32, format: i32, kind: i32, limit: i32): i32 {
  const chain = guardsOf(guards)
  const isKnown = format >= TEXTS_COMPLETIONS && format <= TEXTS_TOKEN_COUNT && kind >= TEXTS_REQUEST && kind <= TEXTS_ERROR
  if ((guards != 0 && chain == 0) || !isKnown || limit <= 0) return ERROR_ARGUMENT
  clearFailure()
  const made = changetype<Rewriter>(newRecord(offsetof<Rewriter>()))
  made.guards = chain
  made.format = format
  made.kind = kind
  made.limit = limit
  made.heldLimit = limit
  made.rejected = -1
  made.counts = newWords()
  made.streams = newWords()
  made.model = newBytes()
  made.window = newBytes()
  made.out = newBytes()
  made.side = newBytes()
  made.found = newBytes()
  made.edits = newBytes()
  made.group = newBytes()
  made.joined = newBytes()
  made.masked = newMasked()
  retainGuards(chain)
  if (kind == TEXTS_STREAM) {
    made.stream = changetype<usize>(newStream())
    made.sse = changetype<usize>(newSse())
  }
  const handle = failure != 0 ? failure : newHandle(changetype<usize>(made), HANDLE_TEXTS)
  if (handle < 0) freeRecordOf(made)
  return handle
}

function newWords(): usize {
  const words = blockAlloc(<usize>GUARD_LIMIT << 2)
  if (words == 0) setFailure(ERROR_MEMORY)
  else memory.fill(words, 0, <usize>GUARD_LIMIT << 2)
  return words
}

export function freeRewriter(handle: i32): void {
  const rewriter = rewriterOf(handle)
  if (changetype<usize>(rewriter) == 0) return
  dropHandle(handle)
  freeRecordOf(rewriter)
}

function freeRecordOf(rewriter: Rewriter): void {
  select(rewriter)
  freeStream()
  if (rewriter.sse != 0) freeSse(changetype<Sse>(rewriter.sse))
  for (let i: usize = 0; i < <usize>GUARD_LIMIT && rewriter.streams != 0; i++) {
    const stream = <usize>load<u32>(rewriter.streams + (i << 2))
    if (stream != 0) freeStreamRecord(stream)
  }
  blockFree(rewriter.streams)
  freeMatches(rewriter.counts)
  blockFree(rewriter.counts)
  releaseGuards(rewriter.guards)
  freeBytes(rewriter.model)
  freeBytes(rewriter.window)
  freeBytes(rewriter.out)
  freeBytes(rewriter.side)
  freeBytes(rewriter.found)
  freeBytes(rewriter.edits)
  freeBytes(rewriter.group)
  freeBytes(rewriter.joined)
  freeBytes(rewriter.masked.text)
  freeBytes(rewriter.masked.ends)
  freeRecord(changetype<usize>(rewriter.masked))
  freeRecord(changetype<usize>(rewriter))
}

/** Takes the next bytes of the message; how many come out, or a code. */
export function pushRewriter(rewriter: Rewriter, from: usize, length: i32, isEnd: bool): i32 {
  select(rewriter)
  clear(rw.out)
  if (rw.code != 0) return rw.code
  if (rw.isOver) return ERROR_ARGUMENT
  clearFailure()
  setOrigin(0)
  if (rw.kind == TEXTS_STREAM) pushStream(from, length, isEnd)
  else pushWhole(from, length, isEnd)
  rw.isOver = isEnd
  if (failure == 0) return rw.out.used
  rw.code = failure
  return refuse(failure, rw.kind == TEXTS_STREAM ? 0 : <usize>readOffset())
}

function pushStream(from: usize, length: i32, isEnd: bool): void {
  readEvents(changetype<Sse>(rw.sse), from, length)
  if (isEnd && failure == 0) finishStream()
  if (isGuarded()) return
  // Nothing is protected here, so that an event that cannot be read passes too.
  clearFailure()
  clear(rw.out)
  append(rw.out, from, length)
}

function pushWhole(from: usize, length: i32, isEnd: bool): void {
  if (length > rw.limit - rw.window.used) return setFailure(TEXTS_TOO_LARGE)
  if (rw.window.used == 0 && isEnd) return rewrite(from, length)
  append(rw.window, from, length)
  if (!isEnd || failure != 0) return
  rewrite(rw.window.data, rw.window.used)
  clear(rw.window)
}

function rewrite(from: usize, length: i32): void {
  const root = parseDocument(from, length)
  if (failure == 0 && rw.kind != TEXTS_ERROR && !isKind(root, KIND_OBJECT)) setFailure(TEXTS_MALFORMED)
  if (failure != 0) return
  clear(rw.side)
  beginEdits(rw.found)
  if (rw.kind == TEXTS_ERROR) maskEvery(root)
  else {
    readDetails(root)
    if (rw.kind == TEXTS_REQUEST) rewriteRequest(root)
    else rewriteAnswer(root)
  }
  if (failure != 0) return
  sortEdits(rw.edits)
  writeTape(rw.out, rw.edits, rw.side)
  clear(rw.side)
  forgetDocument()
}

function rewriteRequest(root: i32): void {
  maskRequest(root)
  if (failure == 0 && isGuarded()) needRequest(root)
}

function rewriteAnswer(root: i32): void {
  if (isGuarded()) {
    if (!needAnswer(root)) return
    maskRepeated(root)
  }
  maskAnswer(root)
}

/** Writes an error with which the message ends, behind what has come out of it; bytes at the output. */
export function writeError(rewriter: Rewriter, status: i32, from: usize, length: i32): i32 {
  select(rewriter)
  clearFailure()
  if (rw.code == 0) clear(rw.out)
  rw.code = rw.code == 0 ? ERROR_ARGUMENT : rw.code
  rw.isOver = true
  const isStream = rw.kind == TEXTS_STREAM
  const isMessages = rw.format == TEXTS_MESSAGES || rw.format == TEXTS_TOKEN_COUNT
  if (!isStream) clear(rw.out)
  if (isStream && rw.format == TEXTS_RESPONSES) writeResponsesError(from, length)
  else {
    if (isStream) appendAscii(rw.out, isMessages ? 'event: error\ndata: ' : 'data: ')
    appendAscii(rw.out, isMessages ? '{"type":"error","error":{"type":"' : '{"error":{"message":')
    if (isMessages) {
      appendAscii(rw.out, messagesType(status))
      appendAscii(rw.out, '","message":')
      appendString(rw.out, from, length)
      appendAscii(rw.out, '}}')
    } else {
      appendString(rw.out, from, length)
      appendAscii(rw.out, ',"type":"')
      appendAscii(rw.out, completionsType(status))
      appendAscii(rw.out, '","param":null,"code":null}}')
    }
  }
  if (isStream) appendAscii(rw.out, '\n\n')
  return failure != 0 ? failure : rw.out.used
}

function writeResponsesError(from: usize, length: i32): void {
  appendAscii(rw.out, 'event: error\ndata: {"type":"error","code":null,"message":')
  appendString(rw.out, from, length)
  appendAscii(rw.out, ',"param":null,"sequence_number":')
  appendNumber(rw.out, rw.nextNumber)
  appendAscii(rw.out, '}')
}

function commonType(status: i32): string {
  if (status == 401) return 'authentication_error'
  if (status == 403) return 'permission_error'
  if (status == 404) return 'not_found_error'
  return status == 429 ? 'rate_limit_error' : ''
}

function messagesType(status: i32): string {
  if (status == 400) return 'invalid_request_error'
  if (status == 413) return 'request_too_large'
  const common = commonType(status)
  return common.length > 0 ? common : 'api_error'
}

function completionsType(status: i32): string {
  const common = commonType(status)
  if (common.length > 0) return common
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
