#include "engine/detail/hf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fixpoint::engine::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json split(const std::string& regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}

Json byte_level(bool use_regex) { return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}}; }

Json sequence(std::vector<Json> steps) { return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}; }

Json bpe() {
  return {{"pre_tokenizer", byte_level(true)},
          {"added_tokens", {{{"id", 4}, {"content", "<|end|>"}, {"special", true}}, {{"id", 5}, {"content", "<tool>"}, {"special", false}}}},
          {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"abb", 3}}}, {"merges", {"a b", "ab b"}}}}};
}

Json with_pre(Json pre) {
  auto json = bpe();
  json["pre_tokenizer"] = std::move(pre);
  return json;
}

TokenizerSpec read(const Json& json) {
  auto spec = read_tokenizer_json(json, "tokenizer.json");
  if (!spec) throw std::runtime_error(spec.error().message());
  return std::move(*spec);
}

std::string error_of(const Json& json) {
  const auto spec = read_tokenizer_json(json, "tokenizer.json");
  EXPECT_FALSE(spec.has_value());
  return spec ? "" : spec.error().message();
}

TEST(HfTokenizerTest, ReadsTokensAddedTokensAndMergesInBothSpellings) {
  const auto spec = read(bpe());
  EXPECT_THAT(spec.tokens, ElementsAre("a", "b", "ab", "abb", "<|end|>", "<tool>"));
  EXPECT_EQ(spec.types[3], TokenType::normal);
  EXPECT_EQ(spec.types[4], TokenType::control);
  EXPECT_EQ(spec.types[5], TokenType::user_defined);
  EXPECT_THAT(spec.merges, ElementsAre(Pair("a", "b"), Pair("ab", "b")));
  auto pairs = bpe();
  pairs["model"]["merges"] = Json::array({Json::array({"a", "b"}), Json::array({"ab", "b"})});
  EXPECT_EQ(read(pairs).merges, spec.merges);
}

TEST(HfTokenizerTest, RecognisesPreTokenizersByTheirPatterns) {
  EXPECT_EQ(read(bpe()).pre, PreTokenizer::gpt2);
  EXPECT_EQ(read(with_pre(sequence({split(kLlama3), byte_level(false)}))).pre, PreTokenizer::llama3);
  std::string qwen(kLlama3);
  qwen.erase(qwen.find("{1,3}"), 5);
  EXPECT_EQ(read(with_pre(sequence({split(qwen), byte_level(false)}))).pre, PreTokenizer::qwen2);
  const Json digits{{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_EQ(read(with_pre(sequence({split("[\r\n]"), split("\\s?\\p{L}+"), split("\\s?\\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"),
                                    digits, byte_level(false)})))
                .pre,
            PreTokenizer::deepseek_coder);
  EXPECT_THAT(error_of(with_pre(sequence({split("\\d+"), byte_level(false)}))),
              HasSubstr("'pre_tokenizer': is not one of the known ones"));
  EXPECT_THAT(error_of(with_pre(nullptr)), HasSubstr("neither byte-level BPE nor BPE with byte fallback"));
  auto prefix = byte_level(true);
  prefix["add_prefix_space"] = true;
  EXPECT_THAT(error_of(with_pre(prefix)), HasSubstr("'<ByteLevel>'"));
}

TEST(HfTokenizerTest, ReadsNormalizerAndIgnoreMergesAndBos) {
  auto json = bpe();
  json["normalizer"] = {{"type", "NFC"}};
  json["model"]["ignore_merges"] = true;
  json["post_processor"] = {{"type", "Sequence"},
                            {"processors",
                             {{{"type", "ByteLevel"}},
                              {{"type", "TemplateProcessing"},
                               {"single", {{{"SpecialToken", {{"id", "<|end|>"}}}}, {{"Sequence", {{"id", "A"}}}}}}}}}};
  const auto spec = read(json);
  EXPECT_TRUE(spec.nfc);
  EXPECT_TRUE(spec.ignore_merges);
  EXPECT_TRUE(spec.add_bos);
  EXPECT_EQ(spec.bos, 4);
  json["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_THAT(error_of(json), HasSubstr("field 'normalizer': step 'Lowercase' is not supported"));
}

TEST(HfTokenizerTest, SentencePieceScoresFollowTheMerges) {
  Json json{{"normalizer",
             {{"type", "Sequence"},
              {"normalizers",
               {{{"type", "Prepend"}, {"prepend", "▁"}}, {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}}}}},
            {"added_tokens", {{{"id", 0}, {"content", "<unk>"}, {"special", true}}, {{"id", 1}, {"content", "<s>"}, {"special", true}}}},
            {"model",
             {{"type", "BPE"},
              {"byte_fallback", true},
              {"unk_token", "<unk>"},
              {"vocab", {{"<unk>", 0}, {"<s>", 1}, {"<0x0A>", 2}, {"a", 3}, {"b", 4}, {"ab", 5}, {"▁a", 6}, {"▁", 7}}},
              {"merges", {"▁ a", "a b"}}}}};
  const auto spec = read(json);
  EXPECT_EQ(spec.kind, TokenizerSpec::Kind::sentencepiece_bpe);
  EXPECT_TRUE(spec.add_space_prefix);
  EXPECT_FALSE(spec.space_prefix_once);
  EXPECT_EQ(spec.types[0], TokenType::unknown);
  EXPECT_EQ(spec.types[2], TokenType::byte);
  EXPECT_EQ(spec.unk, 0);
  EXPECT_GT(spec.scores[6], spec.scores[5]);
  EXPECT_GT(spec.scores[5], spec.scores[3]);

  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}, {"split", false}};
  EXPECT_TRUE(read(json).add_space_prefix);
  EXPECT_TRUE(read(json).space_prefix_once);
  json["pre_tokenizer"]["prepend_scheme"] = "never";
  EXPECT_FALSE(read(json).add_space_prefix);
}

TEST(HfTokenizerTest, WrongVocabulariesAreErrorsThatNameThePlace) {
  const auto change = [](const char* field, Json value) {
    auto json = bpe();
    json["model"][field] = std::move(value);
    return json;
  };
  EXPECT_THAT(error_of(change("vocab", {{"a", 0}, {"b", 0}})), HasSubstr("id 0 belongs to two tokens"));
  EXPECT_THAT(error_of(change("vocab", {{"a", 16000000}})), HasSubstr("token 'a' has no usable id"));
  EXPECT_THAT(error_of(change("vocab", {{"a", -1}})), HasSubstr("no usable id"));
  EXPECT_THAT(error_of(change("vocab", {{"a", "0"}})), HasSubstr("no usable id"));
  EXPECT_THAT(error_of(change("vocab", Json::array())), HasSubstr("'model.vocab'"));
  EXPECT_THAT(error_of(change("merges", {"a b", "ab"})), HasSubstr("merge 1 is not two pieces"));
  EXPECT_THAT(error_of(change("merges", nullptr)), HasSubstr("'model.merges': is missing"));
  EXPECT_THAT(error_of(change("type", "Unigram")), HasSubstr("tokenizer model 'Unigram' is not supported"));
  EXPECT_THAT(error_of(change("unk_token", "<x>")), HasSubstr("'<x>' is not in the vocabulary"));
  auto json = bpe();
  json["added_tokens"][1]["id"] = 3;
  EXPECT_THAT(error_of(json), HasSubstr("'added_tokens[1].content': '<tool>' has the id of 'abb'"));
  json = bpe();
  json["added_tokens"][0]["rstrip"] = true;
  EXPECT_THAT(error_of(json), HasSubstr("'added_tokens[0].rstrip'"));
  EXPECT_THAT(error_of(Json::object()), HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace fixpoint::engine::detail
