"""BERT model."""


import json

import paddle.fluid as fluid

from model.transformer_encoder import encoder_layer, pre_process_layer


class BertConfig:
    def __init__(self, text):
        self._config_dict = json.loads(text)

    def __getitem__(self, key):
        return self._config_dict[key]


class BertModel:
    def __init__(
        self,
        src_ids,
        position_ids,
        sentence_ids,
        input_mask,
        config,
        weight_sharing=True,
        use_fp16=False,
    ):
        self._emb_size = config["hidden_size"]
        self._n_layer = config["num_hidden_layers"]
        self._n_head = config["num_attention_heads"]
        self._voc_size = config["vocab_size"]
        self._max_position_seq_len = config["max_position_embeddings"]
        self._sent_types = config["type_vocab_size"]
        self._hidden_act = config["hidden_act"]
        self._weight_sharing = weight_sharing
        self._word_emb_name = "word_embedding"
        self._dtype = "float16" if use_fp16 else "float32"
        self._param_initializer = fluid.initializer.TruncatedNormal(
            scale=config["initializer_range"]
        )
        self._build_model(src_ids, position_ids, sentence_ids, input_mask)

    def _embed(self, ids, rows, name):
        return fluid.layers.embedding(
            input=ids,
            size=[rows, self._emb_size],
            dtype=self._dtype,
            param_attr=fluid.ParamAttr(name=name, initializer=self._param_initializer),
            is_sparse=False,
        )

    def _build_model(self, src_ids, position_ids, sentence_ids, input_mask):
        emb_out = self._embed(src_ids, self._voc_size, self._word_emb_name)
        emb_out = emb_out + self._embed(
            position_ids, self._max_position_seq_len, "pos_embedding"
        )
        emb_out = emb_out + self._embed(
            sentence_ids, self._sent_types, "sent_embedding"
        )
        emb_out = pre_process_layer(emb_out, "nd", 0.0, name="pre_encoder")

        self_attn_mask = fluid.layers.matmul(
            x=input_mask, y=input_mask, transpose_y=True
        )
        self_attn_mask = fluid.layers.scale(
            x=self_attn_mask, scale=10000.0, bias=-1.0, bias_after_scale=False
        )
        n_head_self_attn_mask = fluid.layers.stack(
            x=[self_attn_mask] * self._n_head, axis=1
        )
        n_head_self_attn_mask.stop_gradient = True

        self.checkpoints = []
        self._enc_out = emb_out
        for i in range(self._n_layer):
            self._enc_out = encoder_layer(
                self._enc_out,
                n_head_self_attn_mask,
                self._n_head,
                self._emb_size,
                self._emb_size * 4,
                self._hidden_act,
                self._param_initializer,
                "encoder_layer_" + str(i),
            )
            self.checkpoints.append(self._enc_out)

    def get_sequence_output(self):
        return self._enc_out

    def get_pooled_output(self):
        next_sent_feat = fluid.layers.slice(
            input=self._enc_out, axes=[1], starts=[0], ends=[1]
        )
        return fluid.layers.fc(
            input=next_sent_feat,
            size=self._emb_size,
            act="tanh",
            param_attr=fluid.ParamAttr(
                name="pooled_fc.w_0", initializer=self._param_initializer
            ),
            bias_attr="pooled_fc.b_0",
        )

    def get_pretraining_output(self, mask_label, mask_pos, labels):
        mask_pos = fluid.layers.cast(x=mask_pos, dtype="int32")
        next_sent_feat = self.get_pooled_output()
        reshaped_emb_out = fluid.layers.reshape(
            x=self._enc_out, shape=[-1, self._emb_size]
        )
        mask_feat = fluid.layers.gather(input=reshaped_emb_out, index=mask_pos)
        mask_trans_feat = fluid.layers.fc(
            input=mask_feat,
            size=self._emb_size,
            act=self._hidden_act,
            param_attr=fluid.ParamAttr(
                name="mask_lm_trans_fc.w_0", initializer=self._param_initializer
            ),
            bias_attr=fluid.ParamAttr(name="mask_lm_trans_fc.b_0"),
        )
        mask_trans_feat = pre_process_layer(mask_trans_feat, "n", name="mask_lm_trans")
        mask_lm_out_bias_attr = fluid.ParamAttr(
            name="mask_lm_out_fc.b_0", initializer=fluid.initializer.Constant(0.0)
        )
        if self._weight_sharing:
            fc_out = fluid.layers.matmul(
                x=mask_trans_feat,
                y=fluid.default_main_program().global_block().var(self._word_emb_name),
                transpose_y=True,
            )
            fc_out += fluid.layers.create_parameter(
                shape=[self._voc_size],
                dtype=self._dtype,
                attr=mask_lm_out_bias_attr,
                is_bias=True,
            )
        else:
            fc_out = fluid.layers.fc(
                input=mask_trans_feat,
                size=self._voc_size,
                param_attr="mask_lm_out_fc.w_0",
                bias_attr=mask_lm_out_bias_attr,
            )
        mask_lm_loss = fluid.layers.softmax_with_cross_entropy(
            logits=fc_out, label=mask_label
        )
        mean_mask_lm_loss = fluid.layers.mean(mask_lm_loss)
        next_sent_fc_out = fluid.layers.fc(
            input=next_sent_feat,
            size=2,
            param_attr=fluid.ParamAttr(name="next_sent_fc.w_0"),
            bias_attr="next_sent_fc.b_0",
        )
        next_sent_loss, next_sent_softmax = fluid.layers.softmax_with_cross_entropy(
            logits=next_sent_fc_out, label=labels, return_softmax=True
        )
        next_sent_acc = fluid.layers.accuracy(input=next_sent_softmax, label=labels)
        mean_next_sent_loss = fluid.layers.mean(next_sent_loss)
        loss = fluid.layers.elementwise_add(mean_next_sent_loss, mean_mask_lm_loss)
        return next_sent_acc, mean_mask_lm_loss, loss
